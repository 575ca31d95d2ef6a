#include "weft/cli/memory/memory_report.h"

#include <algorithm>
#include <cmath>

#include "weft/base/casts.h"
#include "weft/base/text.h"
#include "weft/cli/memory/fit_text.h"
#include "weft/plan/cost/time_text.h"

namespace weft::cli {
namespace {

using base::text;
using measure::MemoryForecast;
using measure::Saving;
using train::BytesByTag;
using train::PeakMoment;
using train::PredictedMemory;

// Share of a peak below which pieces are summed up.
constexpr double kSmallPiece = 0.01;
constexpr double kGib = 1 << 30;

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

std::string moment_text(const PeakMoment& peak) {
  if (peak.phase == train::Phase::Start) return "before the first step";
  return text("{}at {}, {} in flight",
              peak.phase == train::Phase::Evaluation ? "in an evaluation, " : "",
              peak.node.empty() ? "the beginning" : peak.node,
              base::counted(peak.micro_batches, "micro-batch"));
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
  const bool is_formula = !is_counted(memory) && peak.node.empty();
  std::string all = text("pp rank {}: {} {}{}\n  {}\n",
                         stage,
                         human(memory.peak_total_bytes),
                         is_formula ? "by the planner's formula" : moment_text(peak),
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

// Other ranks, one line each.
std::string others_text(const MemoryForecast& forecast, std::size_t shown) {
  if (forecast.stages.size() == 1) return "";
  std::string all = "other pp ranks (--all shows what theirs are made of):\n";
  for (std::size_t stage = 0; stage < forecast.stages.size(); ++stage) {
    if (stage == shown) continue;
    const PredictedMemory& memory = forecast.stages[stage];
    all += text("  pp rank {}: {}{}{}\n",
                stage,
                is_counted(memory) ? "" : "about ",
                human(memory.peak_total_bytes),
                host_text(memory));
  }
  return all;
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

std::string device_verdict(const MemoryReport& report, const measure::Overrun& lacking) {
  const measure::DeviceRoom& device = *report.room.device;
  const std::string verdict = lacking.device == 0
                                  ? text("fits {}: {} to spare of {}",
                                         device.name,
                                         human(device.bytes() - report.forecast.peak_bytes()),
                                         human(device.bytes()))
                                  : text("DOES NOT FIT {}: {} more than {}",
                                         device.name,
                                         human(lacking.device),
                                         human(device.bytes()));
  return text("{} ({} {}, less {} for CUDA, its libraries and gaps)",
              verdict,
              device.of,
              human(device.memory_bytes),
              human(device.reserved_bytes));
}

// Verdict; names the machine if the result depends on it.
std::string verdict_text(const MemoryReport& report) {
  const measure::Overrun lacking = measure::overrun(report.forecast, report.room);
  const std::string left_out = not_counted_text(report.forecast);
  std::string all;
  if (report.room.device) all += device_verdict(report, lacking) + left_out + "\n";
  if (lacking.host > 0) {
    all += text("DOES NOT FIT the memory of {}: {} more than {}{}\n",
                report.room.host->name,
                human(lacking.host),
                human(report.room.host->bytes),
                left_out);
  }
  return all;
}

// Host memory of a saving, if the host lacks it.
std::string host_of_saving(const Saving& saving, const MemoryReport& report) {
  if (saving.host_bytes == 0) return "";
  const std::size_t lacking = measure::overrun(saving.forecast, report.room).host;
  if (lacking == 0) return text(" ({} more of host memory)", human(saving.host_bytes));
  return text(" ({} more of host memory, of which {} has too little by {})",
              human(saving.host_bytes),
              report.room.host->name,
              human(lacking));
}

std::string percent_text(double share) {
  if (std::abs(share) < 5e-5) return "0 %";
  return std::abs(share) < 1 ? text("{:+.2g} %", 100 * share) : text("{:+.0f} %", 100 * share);
}

// Step time per freed GiB: the order of the list.
std::string price_text(const Saving& saving, double step_seconds) {
  if (saving.seconds <= measure::kNoTime * step_seconds) return "-";
  return text("{:.3g}", 1e3 * saving.seconds / (static_cast<double>(saving.bytes) / kGib));
}

std::string saving_row(const Saving& saving, const MemoryReport& report) {
  const bool is_about = report.savings_counted == Counted::ByThePlanner;
  const auto if_priced = [&](std::string price) { return report.is_priced() ? price : "-"; };
  return text("  {:<28} {:>11} {:>11} {:>7} {:>10}  {}{}{}\n",
              saving.name,
              (is_about ? "~" : "") + human(static_cast<std::size_t>(saving.bytes)),
              if_priced(plan::time_text(1e3 * saving.seconds)),
              if_priced(percent_text(share_of_step(saving.seconds, report.forecast))),
              if_priced(price_text(saving, report.forecast.step_seconds)),
              fmt::join(saving.words, " "),
              saving.changes_numerics() ? " (rounds otherwise)" : "",
              host_of_saving(saving, report));
}

std::string_view savings_origin(const MemoryReport& report) {
  if (report.savings_counted == Counted::ByDrySteps) return "";
  return report.program == plan::Program::Weft ? " (estimated by formula; --count counts them)"
                                               : " (estimated by formula)";
}

std::string list_of_savings(const MemoryReport& report) {
  const measure::Savings& savings = *report.savings;
  std::string all =
      text("\nsavings not taken, each alone, by what a GiB costs{}\n", savings_origin(report));
  if (savings.worthwhile.empty()) {
    all += "  none\n";
  } else {
    all += text("  {:<28} {:>11} {:>11} {:>7} {:>10}  {}\n",
                "",
                "frees",
                "costs",
                "of step",
                "ms a GiB",
                "words to type");
  }
  for (const Saving& saving : savings.worthwhile) all += saving_row(saving, report);
  if (!savings.without.empty()) {
    all += text("  nothing at the peak: {}\n", fmt::join(savings.without, ", "));
  }
  if (!report.is_priced()) {
    return all +
           "  not priced: runtime.device = cuda and no card is named: set hardware.gpu=NAME\n";
  }
  return all + text("  times of a step of {}, at {}costs: {}\n",
                    plan::time_text(1e3 * report.forecast.step_seconds),
                    report.savings_counted == Counted::ByThePlanner ? "" : "nominal ",
                    report.costs);
}

}  // namespace

std::string stages_text(const MemoryReport& report) {
  const MemoryForecast& forecast = report.forecast;
  if (!forecast.is_predicted()) {
    return text("  not predicted: {}\n", fmt::join(forecast.left_out, "; "));
  }
  std::string all;
  for (const std::string& line : base::split(verdict_text(report), '\n')) {
    if (!line.empty()) all += text("  {}\n", line);
  }
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

std::string program_line(const MemoryReport& report) {
  const std::string_view memory = name_of(report.program);
  if (!report.program_of_times) return text("memory as {} runs it\n", memory);
  if (report.program_of_times == report.program)
    return text("memory and times as {} runs it\n", memory);
  return text("memory as {} runs it; times as {} runs it\n",
              memory,
              name_of(*report.program_of_times));
}

std::string peaks_text(const MemoryReport& report, RanksShown ranks) {
  const MemoryForecast& forecast = report.forecast;
  std::string all = program_line(report);
  if (!forecast.is_predicted()) return all + stages_text(report);
  all += verdict_text(report);
  if (ranks == RanksShown::Largest) {
    const std::size_t largest = forecast.largest_stage();
    all += rank_text(largest, forecast.stages[largest]) + others_text(forecast, largest);
  } else {
    for (std::size_t stage = 0; stage < forecast.stages.size(); ++stage) {
      all += rank_text(stage, forecast.stages[stage]);
    }
  }
  if (report.is_extended && report.peaks_counted == Counted::ByThePlanner) {
    all +=
        "  about: from models of some of these layers, which all need the same; --all counts "
        "them\n";
  }
  return all + offload_text(forecast) + left_out_text(forecast) + shortened_text(forecast);
}

std::string savings_text(const MemoryReport& report) {
  if (report.savings_wait) {
    return "\nsavings not taken: not counted, as each takes a dry step as long as this one; "
           "--count "
           "counts them\n";
  }
  if (!report.savings) return "";
  const std::string end = report.fits() ? verdict_text(report) : fit_lines(report);
  return list_of_savings(report) + (end.empty() || end.starts_with('\n') ? "" : "\n") + end;
}

}  // namespace weft::cli
