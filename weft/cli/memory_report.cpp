#include "weft/cli/memory_report.h"

#include <algorithm>
#include <cmath>

#include "weft/base/casts.h"
#include "weft/base/text.h"
#include "weft/cli/memory_limit.h"

namespace weft::cli {
namespace {

using base::text;
using measure::MemoryForecast;
using measure::Saving;
using train::BytesByTag;
using train::PeakMoment;
using train::PredictedMemory;

// Pieces of less than this share of a peak are summed up in text.
constexpr double kSmallPiece = 0.01;

std::string human(std::size_t bytes) { return base::human_bytes(static_cast<double>(bytes)); }

std::string tags_text(const BytesByTag& bytes) {
  std::vector<std::string> parts;
  for (int tag = 0; tag < tensor::kTags; ++tag) {
    if (bytes[base::at(tag)] == 0) continue;
    parts.push_back(
        text("{} {}", tensor::name_of(static_cast<tensor::Tag>(tag)), human(bytes[base::at(tag)])));
  }
  return text("{}", fmt::join(parts, ", "));
}

base::Json tags_json(const BytesByTag& bytes) {
  base::Json tags = base::Json::object();
  for (int tag = 0; tag < tensor::kTags; ++tag) {
    tags[std::string(tensor::name_of(static_cast<tensor::Tag>(tag)))] = bytes[base::at(tag)];
  }
  return tags;
}

std::string_view word(train::Phase phase) {
  switch (phase) {
    case train::Phase::Start:
      return "start";
    case train::Phase::Training:
      return "training";
    case train::Phase::Evaluation:
      return "evaluation";
  }
  return "";
}

std::string moment_text(const PeakMoment& peak) {
  if (peak.phase == train::Phase::Start) return "before the first step";
  return text("{}at {}, {} in flight",
              peak.phase == train::Phase::Evaluation ? "in an evaluation, " : "",
              peak.node.empty() ? "the beginning" : peak.node,
              base::counted(peak.micro_batches, "micro-batch"));
}

// What lies in host memory, and is no part of the peak.
std::size_t offloaded_bytes(const PredictedMemory& memory) {
  return memory.peak_bytes[base::at(static_cast<int>(tensor::Tag::Offloaded))];
}

std::string host_text(const PredictedMemory& memory) {
  std::string all;
  if (const std::size_t offloaded = offloaded_bytes(memory); offloaded > 0) {
    all += text("; {} of host memory besides (offloaded)", human(offloaded));
  }
  if (memory.snapshot_bytes > 0) {
    all += text("; {} of host memory for the copy of an asynchronous save",
                human(memory.snapshot_bytes));
  }
  return all;
}

std::string rank_text(std::size_t stage, const PredictedMemory& memory) {
  const PeakMoment& peak = memory.at_peak;
  std::string all = text("pp rank {}: {} {}{}\n  {}\n",
                         stage,
                         human(memory.peak_total_bytes),
                         moment_text(peak),
                         host_text(memory),
                         tags_text(peak.bytes));
  const double small = kSmallPiece * static_cast<double>(memory.peak_total_bytes);
  std::size_t rest = 0, left = 0;
  for (const train::PieceBytes& piece : peak.pieces) {
    if (static_cast<double>(piece.bytes) < small) {
      rest += piece.bytes;
      ++left;
      continue;
    }
    all += text("  {:>11}  {:<14} {:<22} {}\n",
                human(piece.bytes),
                tensor::name_of(piece.tag),
                piece.piece,
                base::counted(piece.blocks, "buffer"));
  }
  if (left > 0) {
    all += text("  {:>11}  in {} of less than 1 % each\n",
                human(rest),
                base::counted(static_cast<std::int64_t>(left), "other piece"));
  }
  return all;
}

base::Json rank_json(std::size_t stage, const PredictedMemory& memory) {
  base::Json pieces = base::Json::array();
  for (const train::PieceBytes& piece : memory.at_peak.pieces) {
    pieces.push_back({{"tag", tensor::name_of(piece.tag)},
                      {"piece", piece.piece},
                      {"bytes", piece.bytes},
                      {"buffers", piece.blocks}});
  }
  return {{"pp_rank", stage},
          {"rank", memory.rank},
          {"peak_bytes", memory.peak_total_bytes},
          {"host_bytes", offloaded_bytes(memory) + memory.snapshot_bytes},
          {"snapshot_bytes", memory.snapshot_bytes},
          {"step", word(memory.at_peak.phase)},
          {"node", memory.at_peak.node},
          {"micro_batches_in_flight", memory.at_peak.micro_batches},
          {"tags", tags_json(memory.at_peak.bytes)},
          {"peak_bytes_by_tag", tags_json(memory.peak_bytes)},
          {"pieces", std::move(pieces)}};
}

double share_of(double seconds, const MemoryForecast& forecast) {
  return forecast.step_seconds > 0 ? seconds / forecast.step_seconds : 0;
}

std::string offload_text(const MemoryForecast& forecast) {
  return forecast.offload.empty() ? "" : text("  offloaded: {}\n", forecast.offload);
}

std::string left_out_text(const MemoryForecast& forecast) {
  std::string all;
  for (const std::string& part : forecast.left_out) all += text("  without: {}\n", part);
  return all;
}

std::string shortened_text(const MemoryForecast& forecast) {
  if (forecast.run == forecast.micro_batches) return "";
  return text("  of a step of {} of its {} micro-batches: what is kept repeats\n",
              forecast.run,
              forecast.micro_batches);
}

// The text of a machine depends on the machine, so that it is told where it matters.
std::string room_text(const MemoryReport& report) {
  const measure::Overrun lacking = measure::overrun(report.forecast, report.room);
  std::string all;
  if (const auto& device = report.room.device) {
    all += lacking.device == 0 ? text("fits {}: {} of {} stay free",
                                      device->name,
                                      human(device->bytes() - report.forecast.peak_bytes()),
                                      human(device->bytes()))
                               : text("DOES NOT FIT {}: {} more than {}",
                                      device->name,
                                      human(lacking.device),
                                      human(device->bytes()));
    all += text(" ({} {}, less {} for CUDA, its libraries and gaps)\n",
                device->of,
                human(device->memory_bytes),
                human(device->reserved_bytes));
  }
  if (lacking.host > 0) {
    all += text("DOES NOT FIT the memory of {}: {} more than {}\n",
                report.room.host->name,
                human(lacking.host),
                human(report.room.host->bytes));
  }
  return all;
}

// More than the host has, where it has not so much.
std::string host_of_saving(const Saving& saving, const MemoryReport& report) {
  if (saving.host_bytes == 0) return "";
  const std::size_t lacking = measure::overrun(saving.forecast, report.room).host;
  if (lacking == 0) return text(" ({} more of host memory)", human(saving.host_bytes));
  return text(" ({} more of host memory, of which {} has too little by {})",
              human(saving.host_bytes),
              report.room.host->name,
              human(lacking));
}

// "3.2 ms", "45.4 s": nobody reads 4.536e+04 ms.
std::string duration_text(double seconds) {
  if (std::abs(seconds) < 1e-6) return "0 ms";
  return std::abs(seconds) < 1 ? text("{:.3g} ms", 1e3 * seconds) : text("{:.1f} s", seconds);
}

std::string percent_text(double share) {
  if (std::abs(share) < 5e-5) return "0 %";
  return std::abs(share) < 1 ? text("{:+.2g} %", 100 * share) : text("{:+.0f} %", 100 * share);
}

std::string savings_text(const MemoryReport& report) {
  const measure::Savings& savings = *report.savings;
  std::string all = "\nsavings not taken, cheapest first: each alone, of the largest peak\n";
  if (savings.worthwhile.empty()) all += "  none\n";
  for (const Saving& saving : savings.worthwhile) {
    all += text("  {:<28} -{:>10}  {:>10} {:>8}  {}{}{}\n",
                saving.name,
                human(static_cast<std::size_t>(saving.bytes)),
                duration_text(saving.seconds),
                percent_text(share_of(saving.seconds, report.forecast)),
                fmt::join(saving.words, " "),
                saving.rounds() ? " (rounds otherwise)" : "",
                host_of_saving(saving, report));
  }
  if (!savings.without.empty()) {
    all += text("  nothing at the peak: {}\n", fmt::join(savings.without, ", "));
  }
  return all + text("  times of a step of {}, at nominal costs: {}\n",
                    duration_text(report.forecast.step_seconds),
                    report.costs);
}

base::Json savings_json(const MemoryReport& report) {
  base::Json list = base::Json::array();
  for (const Saving& saving : report.savings->worthwhile) {
    list.push_back({{"name", saving.name},
                    {"words", saving.words},
                    {"bytes", saving.bytes},
                    {"peak_bytes", saving.peak_bytes},
                    {"host_bytes", saving.host_bytes},
                    {"cost", share_of(saving.seconds, report.forecast)},
                    {"cost_ms", 1e3 * saving.seconds}});
  }
  return list;
}

}  // namespace

base::Json stages_json(const MemoryForecast& forecast) {
  base::Json stages = base::Json::array();
  for (const PredictedMemory& stage : forecast.stages) {
    stages.push_back({{"rank", stage.rank},
                      {"peak_bytes_by_tag", tags_json(stage.peak_bytes)},
                      {"peak_total_bytes", stage.peak_total_bytes},
                      {"snapshot_bytes", stage.snapshot_bytes}});
  }
  return {{"predicted", forecast.is_predicted()},
          {"left_out", forecast.left_out},
          {"offload", forecast.offload},
          {"micro_batches", forecast.micro_batches},
          {"micro_batches_run", forecast.run},
          {"pipeline_ranks", std::move(stages)}};
}

std::string stages_text(const MemoryForecast& forecast) {
  if (!forecast.is_predicted()) {
    return text("  not predicted: {}\n", fmt::join(forecast.left_out, "; "));
  }
  std::string all;
  for (std::size_t stage = 0; stage < forecast.stages.size(); ++stage) {
    const PredictedMemory& memory = forecast.stages[stage];
    all += text("  {:<16}{}; at one time {}, predicted by a dry step\n",
                text("pp rank {}", stage),
                tags_text(memory.peak_bytes),
                human(memory.peak_total_bytes));
    if (memory.snapshot_bytes == 0) continue;
    all += text("  {:<16}{} of host memory besides: the copy of an asynchronous save\n",
                "",
                human(memory.snapshot_bytes));
  }
  return all + offload_text(forecast) + left_out_text(forecast) + shortened_text(forecast);
}

base::Json to_json(const MemoryReport& report) {
  const MemoryForecast& forecast = report.forecast;
  base::Json ranks = base::Json::array();
  for (std::size_t stage = 0; stage < forecast.stages.size(); ++stage) {
    ranks.push_back(rank_json(stage, forecast.stages[stage]));
  }
  base::Json json{{"predicted", forecast.is_predicted()},
                  {"left_out", forecast.left_out},
                  {"offload", forecast.offload},
                  {"micro_batches", forecast.micro_batches},
                  {"micro_batches_run", forecast.run},
                  {"ranks", std::move(ranks)},
                  {"gpu", nullptr},
                  {"fits", nullptr},
                  {"fit", nullptr}};
  if (!forecast.is_predicted()) return json;
  json["peak_bytes"] = forecast.peak_bytes();
  json["step_ms"] = 1e3 * forecast.step_seconds;
  json["costs"] = report.costs;
  json["savings"] = savings_json(report);
  json["without_effect"] = report.savings->without;
  if (const auto& device = report.room.device) {
    json["gpu"] = {{"name", device->name},
                   {"memory_bytes", device->memory_bytes},
                   {"reserved_bytes", device->reserved_bytes}};
  }
  if (report.room.device || !report.fits()) json["fits"] = report.fits();
  if (report.fit) {
    json["fit"] = {{"names", report.fit->names},
                   {"words", report.fit->words},
                   {"peak_bytes", report.fit->peak_bytes},
                   {"cost", share_of(report.fit->seconds, forecast)}};
  }
  return json;
}

std::string to_text(const MemoryReport& report) {
  const MemoryForecast& forecast = report.forecast;
  if (!forecast.is_predicted()) return stages_text(forecast);
  std::string all;
  for (std::size_t stage = 0; stage < forecast.stages.size(); ++stage) {
    all += rank_text(stage, forecast.stages[stage]);
  }
  all += offload_text(forecast) + left_out_text(forecast) + shortened_text(forecast);
  all += room_text(report);
  all += savings_text(report);
  const std::string fit = fit_text(report);
  return fit.empty() ? all : all + fit + "\n";
}

}  // namespace weft::cli
