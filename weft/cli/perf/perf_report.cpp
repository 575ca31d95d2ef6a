#include "weft/cli/perf/perf_report.h"

#include <algorithm>

#include "weft/base/text.h"
#include "weft/config/dump.h"
#include "weft/derive/derived.h"

namespace weft::cli {
namespace {

using base::Json;
using base::text;

std::string_view word(PerfState state) {
  switch (state) {
    case PerfState::Complete:
      return "complete";
    case PerfState::Interrupted:
      return "interrupted";
    case PerfState::Failed:
      return "failed";
    case PerfState::Running:
      return "running";
  }
  return "";
}

// True for interrupted and killed runs: a file with "running" was left by a killed process.
bool is_cut_short(PerfState state) {
  return state == PerfState::Interrupted || state == PerfState::Running;
}

Json changes_json(const std::vector<plan::Change>& changes) {
  Json all = Json::array();
  for (const plan::Change& change : changes) {
    all.push_back(
        {{"key", change.key}, {"from", change.from}, {"to", change.to}, {"why", change.why}});
  }
  return all;
}

Json candidate_json(const Candidate& candidate) {
  return {{"value", candidate.value},
          {"changes", changes_json(candidate.changes)},
          {"config", config::to_json(candidate.config)}};
}

Json peaks_json(const measure::PerfRun& run) {
  Json peaks = Json::object();
  for (int tag = 0; tag < tensor::kTags; ++tag) {
    peaks[std::string(tensor::name_of(static_cast<tensor::Tag>(tag)))] =
        run.peak_bytes[static_cast<std::size_t>(tag)];
  }
  return peaks;
}

void put_times(const measure::PerfRun& run,
               const Candidate& candidate,
               double speedup,
               Json& json) {
  const bool timed = run.steady_ms.has_value();
  const auto number = [&](double value) { return timed ? Json(value) : Json(); };
  const measure::Steady steady = run.steady_ms.value_or(measure::Steady{});
  const auto ranks = static_cast<double>(derive::layout_of(candidate.config).world);
  json["step_ms"] = number(steady.mean);
  json["spread_ms"] = number(steady.deviation);
  json["least_ms"] = number(steady.least);
  json["most_ms"] = number(steady.most);
  json["speedup"] = speedup > 0 ? Json(speedup) : Json();
  json["tokens_per_second"] = number(run.tokens_per_second);
  json["tflops"] = number(run.flops_per_second / 1e12);
  json["tflops_per_rank"] = number(run.flops_per_second / 1e12 / ranks);
}

void put_exposure(const measure::PerfRun& run, Json& json) {
  const bool traced = run.exposure.has_value();
  const trace::CommunicationTime time = traced ? run.exposure->total : trace::CommunicationTime{};
  const auto number = [&](double value) { return traced ? Json(value) : Json(); };
  json["communication_ms"] = number(time.communication_ms);
  json["exposed_ms"] = number(time.exposed_ms);
  json["hidden_any"] = number(time.hidden_any);
  json["hidden_gemm"] = number(time.hidden_gemm);
}

Json run_json(const PerfReport& report, std::size_t index) {
  const measure::PerfRun& run = report.runs[index];
  const Candidate& candidate = report.plan.candidates[index];
  Json json{{"value", candidate.value}};
  put_times(run, candidate, speedup(report, index), json);
  const std::optional<RunDifference> difference = beside_first(report, index);
  json["verdict"] = difference ? Json(word(difference->verdict())) : Json();
  json["noise_ms"] = difference && difference->noise_ms ? Json(*difference->noise_ms) : Json();
  put_exposure(run, json);
  json["peak_bytes"] = run.total_peak_bytes();
  json["peak_bytes_by_tag"] = peaks_json(run);
  json["first_loss"] = run.losses.empty() ? Json() : Json(run.losses.front());
  json["final_loss"] = run.losses.empty() ? Json() : Json(run.losses.back());
  json["not_finite"] = run.not_finite;
  json["repeated_steps"] = run.repeated;
  json["interrupted"] = run.interrupted;
  json["window"] =
      run.window ? Json{{"first_step", run.window->first}, {"end_step", run.window->end}} : Json();
  json["step_times_ms"] = run.step_ms;
  json["losses"] = run.losses;
  json["changes"] = changes_json(candidate.changes);
  json["config"] = config::to_json(candidate.config);
  return json;
}

Json contract_json(const PerfPlan& plan) {
  return {{"varies", plan.varied},
          {"follows", plan.following},
          {"frozen", frozen_text(plan)},
          {"label", label_of(plan)},
          {"reasons", benchmark_reasons(plan)},
          {"twin", plan.is_twin()},
          {"twin_reason", plan.twin_reason},
          {"steps", plan.steps},
          {"traced_steps", measure::kTracedSteps}};
}

bool any(const PerfPlan& plan, bool (*holds)(const config::Config&)) {
  return std::ranges::any_of(plan.candidates,
                             [&](const Candidate& candidate) { return holds(candidate.config); });
}

}  // namespace

std::vector<std::string> benchmark_reasons(const PerfPlan& plan) {
  using config::Config;
  std::vector<std::string> reasons;
  const auto add = [&](bool (*holds)(const Config&), const char* reason) {
    if (any(plan, holds)) reasons.emplace_back(reason);
  };
  if (plan.is_twin()) reasons.push_back("a scaled-down twin runs instead of the model");
  add([](const Config& c) { return c.dataset.kind == config::DataKind::Mock; }, "mock data");
  add([](const Config& c) { return c.model.moe_router_force_load_balancing; }, "forced balance");
  add([](const Config& c) { return c.model.moe_router_force_biased.has_value(); },
      "forced imbalance");
  add([](const Config& c) { return !c.rerun_state_machine.check_for_nan_in_loss; },
      "the check for losses that are not finite is off");
  add([](const Config& c) { return c.optimizer.lr == 0; }, "a learning rate of 0");
  add([](const Config& c) { return !derive::fabric_of(c).is_free(); }, "an emulated fabric");
  return reasons;
}

std::string label_of(const PerfPlan& plan) {
  return benchmark_reasons(plan).empty() ? "training-equivalent" : "benchmark-only";
}

std::string frozen_text(const PerfPlan& plan) {
  if (plan.varied.empty()) return "one run: nothing varies";
  std::string frozen = text("every key but {}, the machine, the process, the window",
                            fmt::join(plan.varied, " and "));
  if (!plan.following.empty()) {
    frozen += text("; {} follow{} from the varied",
                   fmt::join(plan.following, ", "),
                   plan.following.size() == 1 ? "s" : "");
  }
  return frozen;
}

std::string crowding(const PerfPlan& plan, const Machine& machine) {
  std::int64_t ranks = 0;
  for (const Candidate& candidate : plan.candidates) {
    ranks = std::max(ranks, derive::layout_of(candidate.config).world);
  }
  if (ranks <= machine.cores) return "";
  return text(
      "{} ranks share {}: step time, exposure and speed-up are then mostly about who gets a "
      "core: use at most {}, or a machine with {} cores",
      ranks,
      base::counted(machine.cores, "core"),
      base::counted(machine.cores, "rank"),
      ranks);
}

double speedup(const PerfReport& report, std::size_t run) {
  const auto& first = report.runs.front().steady_ms;
  const auto& own = report.runs[run].steady_ms;
  return first && own && own->mean > 0 ? first->mean / own->mean : 0;
}

std::optional<RunDifference> beside_first(const PerfReport& report, std::size_t run) {
  if (run == 0) return std::nullopt;
  return difference_of(report.runs[run], report.runs.front());
}

std::string price_command(const PerfReport& report) {
  if (report.asked_file.empty()) return "";
  const config::Config& asked = report.plan.candidates.front().asked;
  const bool names_gpu = asked.hardware.gpu.has_value();
  return text("weft plan --simulate {}{}",
              report.asked_file.string(),
              names_gpu ? "" : " --gpu=NAME");
}

Json to_json(const PerfReport& report) {
  Json runs = Json::array();
  for (std::size_t i = 0; i < report.runs.size(); ++i) runs.push_back(run_json(report, i));
  Json contract = contract_json(report.plan);
  contract["window"] = measure::describe(report.window);
  contract["crowding"] = crowding(report.plan, report.machine);
  Json json{{"format", kPerfFormat},
            {"name", report.name},
            {"state", word(report.state)},
            {"interrupted", is_cut_short(report.state)},
            {"contract", std::move(contract)},
            {"machine", to_json(report.machine)},
            {"runs", std::move(runs)}};
  if (!report.failure.empty()) json["failure"] = report.failure;
  if (!report.asked_file.empty()) json["price_command"] = price_command(report);
  return json;
}

Json to_json(const PerfPlan& plan) {
  Json runs = Json::array();
  for (const Candidate& candidate : plan.candidates) runs.push_back(candidate_json(candidate));
  return {{"contract", contract_json(plan)},
          {"asked", config::to_json(plan.candidates.front().asked)},
          {"runs", std::move(runs)}};
}

}  // namespace weft::cli
