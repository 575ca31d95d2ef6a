#include "weft/base/casts.h"
#include "weft/report/render.h"
#include "weft/tensor/pool.h"

namespace weft::report {
namespace {

using base::Json;

Json walls_json(const trace::Walls& walls) {
  return {{"step_ms", walls.step},
          {"compute_ms", walls.compute},
          {"gemm_ms", walls.gemm},
          {"communication_ms", walls.communication},
          {"slowed_ms", walls.slowed},
          {"late_ms", walls.late},
          {"bubble_ms", walls.bubble},
          {"host_ms", walls.host},
          {"copy_ms", walls.copy},
          {"idle_ms", walls.idle}};
}

Json exposed_json(const trace::Exposure& exposure) {
  Json kinds = Json::object();
  for (const auto& [kind, time] : exposure.kinds) kinds[kind] = trace::to_json(time);
  return kinds;
}

Json memory_json(const MemoryWall& memory) {
  Json stages = Json::array();
  for (std::size_t stage = 0; stage < memory.forecast.stages.size(); ++stage) {
    const train::PredictedMemory& one = memory.forecast.stages[stage];
    Json tags = Json::object();
    for (int tag = 0; tag < tensor::kTags; ++tag) {
      tags[std::string(tensor::name_of(static_cast<tensor::Tag>(tag)))] =
          one.at_peak.bytes[base::at(tag)];
    }
    stages.push_back({{"pp_rank", stage},
                      {"peak_bytes", one.peak_total_bytes},
                      {"node", one.at_peak.node},
                      {"tags", std::move(tags)}});
  }
  Json json{{"ranks", std::move(stages)}, {"gpu", nullptr}, {"room_bytes", nullptr}};
  if (memory.room_bytes > 0) json["gpu"] = memory.gpu, json["room_bytes"] = memory.room_bytes;
  return json;
}

Json row_json(const Comparison::Row& row) {
  return {{"name", row.name},
          {"measured_ms", row.measured_ms},
          {"predicted_ms", row.predicted_ms},
          {"error", row.error()}};
}

Json comparison_json(const Comparison& comparison) {
  Json pieces = Json::array(), nodes = Json::array();
  for (const Comparison::Row& row : comparison.pieces) pieces.push_back(row_json(row));
  for (const Comparison::Row& row : comparison.nodes) nodes.push_back(row_json(row));
  return {{"costs", comparison.costs},
          {"step", row_json(comparison.step)},
          {"replayed", row_json(comparison.replayed)},
          {"reason", comparison.reason.empty() ? Json(nullptr) : Json(comparison.reason)},
          {"pieces", std::move(pieces)},
          {"nodes", std::move(nodes)}};
}

std::string_view word(Suggestion::Basis basis) {
  switch (basis) {
    case Suggestion::Basis::Simulated:
      return "simulated";
    case Suggestion::Basis::AtMost:
      return "at_most";
  }
  return "";
}

Json next_json(const Suggestion& one, double step_ms) {
  Json json{{"phase", word(one.phase)},
            {"change", one.change},
            {"gain", nullptr},
            {"gain_ms", nullptr},
            {"basis", word(one.basis)},
            {"freed_bytes", one.freed_bytes},
            {"because", one.because},
            {"rule", one.rule}};
  if (one.gain_ms) {
    json["gain_ms"] = *one.gain_ms;
    if (step_ms > 0) json["gain"] = *one.gain_ms / step_ms;
  }
  return json;
}

Json steps_json(const StepTimes& steps) {
  return {{"count", steps.steps},
          {"median_ms", steps.median_ms},
          {"tokens_per_second", steps.tokens_per_second},
          {"tflops_per_rank", steps.tflops_per_rank}};
}

}  // namespace

Json to_json(const Report& report) {
  Json ranks = Json::array(), loads = Json::array(), next = Json::array(), about = Json::object();
  for (const Fact& fact : report.about) about[fact.name] = fact.words;
  for (const trace::RankWalls& rank : report.ranks) {
    ranks.push_back(
        {{"rank", rank.rank}, {"label", rank.label}, {"walls", walls_json(rank.walls)}});
  }
  for (const LayerLoad& load : report.loads) {
    loads.push_back({{"layer", load.layer},
                     {"max", load.max},
                     {"p95", load.p95},
                     {"p50", load.p50},
                     {"dropped", load.dropped}});
  }
  for (const Suggestion& one : report.next) next.push_back(next_json(one, report.step_ms()));
  Json json{{"name", report.name},       {"kind", report.kind},
            {"about", std::move(about)}, {"starts", report.starts},
            {"learning", nullptr},       {"crowded", nullptr},
            {"steps", nullptr},          {"traced_steps", report.traced_steps},
            {"micro_batches", nullptr},  {"longest_rank", nullptr},
            {"wall", nullptr},           {"walls", nullptr},
            {"exposed", nullptr},        {"exposed_total", nullptr},
            {"ranks", std::move(ranks)}, {"memory", nullptr},
            {"loads", std::move(loads)}, {"comparison", nullptr},
            {"next", std::move(next)},   {"notes", report.notes}};
  if (!report.wall.empty()) json["wall"] = report.wall;
  if (report.traced_steps > 0) {
    json["walls"] = walls_json(report.walls);
    json["exposed"] = exposed_json(report.exposure);
    json["exposed_total"] = trace::to_json(report.exposure.total);
  }
  if (report.learning) json["learning"] = to_json(*report.learning);
  if (!report.crowded.empty()) json["crowded"] = report.crowded;
  if (report.steps) json["steps"] = steps_json(*report.steps);
  if (report.shortened.micro_batches > 0) {
    json["micro_batches"] = {{"shown", report.shortened.shown},
                             {"of", report.shortened.micro_batches}};
  }
  if (report.longest) json["longest_rank"] = *report.longest;
  if (report.memory) json["memory"] = memory_json(*report.memory);
  if (report.comparison) json["comparison"] = comparison_json(*report.comparison);
  return json;
}

}  // namespace weft::report
