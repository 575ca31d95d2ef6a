// JSON of `weft memory`.
#include "weft/base/casts.h"
#include "weft/cli/memory/memory_report.h"

namespace weft::cli {
namespace {

using measure::MemoryForecast;
using train::PredictedMemory;

base::Json tags_json(const train::BytesByTag& bytes) {
  base::Json tags = base::Json::object();
  for (int tag = 0; tag < tensor::kTags; ++tag) {
    tags[std::string(tensor::name_of(static_cast<tensor::Tag>(tag)))] = bytes[base::at(tag)];
  }
  return tags;
}

std::string_view phase_word(train::Phase phase) {
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
          {"counted", is_counted(memory)},
          {"host_bytes", offloaded_bytes(memory) + memory.snapshot_bytes},
          {"snapshot_bytes", memory.snapshot_bytes},
          {"step", phase_word(memory.at_peak.phase)},
          {"node", memory.at_peak.node},
          {"micro_batches_in_flight", memory.at_peak.micro_batches},
          {"tags", tags_json(memory.at_peak.bytes)},
          {"peak_bytes_by_tag", tags_json(memory.peak_bytes)},
          {"pieces", std::move(pieces)}};
}

base::Json savings_json(const MemoryReport& report) {
  base::Json list = base::Json::array();
  for (const measure::Saving& saving : report.savings->worthwhile) {
    const bool is_priced = report.is_priced();
    const double share = share_of_step(saving.seconds, report.forecast);
    list.push_back({{"name", saving.name},
                    {"words", saving.words},
                    {"bytes", saving.bytes},
                    {"peak_bytes", saving.peak_bytes},
                    {"host_bytes", saving.host_bytes},
                    {"cost", is_priced ? base::Json(share) : base::Json()},
                    {"cost_ms", is_priced ? base::Json(1e3 * saving.seconds) : base::Json()}});
  }
  return list;
}

}  // namespace

bool is_counted(const PredictedMemory& memory) { return !memory.at_peak.pieces.empty(); }

std::size_t offloaded_bytes(const PredictedMemory& memory) {
  return memory.peak_bytes[base::at(static_cast<int>(tensor::Tag::Offloaded))];
}

double share_of_step(double seconds, const MemoryForecast& forecast) {
  return forecast.step_seconds > 0 ? seconds / forecast.step_seconds : 0;
}

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

base::Json to_json(const MemoryReport& report) {
  const MemoryForecast& forecast = report.forecast;
  base::Json ranks = base::Json::array();
  for (std::size_t stage = 0; stage < forecast.stages.size(); ++stage) {
    ranks.push_back(rank_json(stage, forecast.stages[stage]));
  }
  base::Json json{{"program", plan::word(report.program)},
                  {"program_of_times", nullptr},
                  {"predicted", forecast.is_predicted()},
                  {"left_out", forecast.left_out},
                  {"offload", forecast.offload},
                  {"micro_batches", forecast.micro_batches},
                  {"micro_batches_run", forecast.run},
                  {"ranks", std::move(ranks)},
                  {"gpu", nullptr},
                  {"fits", nullptr},
                  {"fit", nullptr}};
  if (report.program_of_times) json["program_of_times"] = plan::word(*report.program_of_times);
  if (!forecast.is_predicted()) return json;
  json["peak_bytes"] = forecast.peak_bytes();
  if (report.savings) {
    json["step_ms"] = 1e3 * forecast.step_seconds;
    json["costs"] = report.costs;
    json["savings"] = savings_json(report);
    json["savings_counted"] = report.savings_counted == Counted::ByDrySteps;
    json["without_effect"] = report.savings->without;
  } else {
    for (const char* key : {"step_ms", "costs", "savings", "savings_counted", "without_effect"}) {
      json[key] = nullptr;
    }
  }
  if (const auto& device = report.room.device) {
    json["gpu"] = {{"name", device->name},
                   {"memory_bytes", device->memory_bytes},
                   {"reserved_bytes", device->reserved_bytes},
                   {"spare_bytes",
                    static_cast<std::int64_t>(device->bytes()) -
                        static_cast<std::int64_t>(forecast.peak_bytes())}};
  }
  if (report.room.device || !report.fits()) json["fits"] = report.fits();
  if (report.fit) {
    json["fit"] = {{"names", report.fit->names},
                   {"words", report.fit->words},
                   {"peak_bytes", report.fit->peak_bytes},
                   {"cost", share_of_step(report.fit->seconds, forecast)}};
  }
  return json;
}

}  // namespace weft::cli
