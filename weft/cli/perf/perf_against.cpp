#include "weft/cli/perf/perf_against.h"

#include <algorithm>
#include <cmath>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/config/field.h"

namespace weft::cli {
namespace {

using base::Json;
using base::text;

std::string_view word(Drift drift) {
  switch (drift) {
    case Drift::None:
      return "same";
    case Drift::Noise:
      return "within the noise";
    case Drift::Regression:
      return "regression";
    case Drift::Improvement:
      return "improvement";
    case Drift::Unjudged:
      return "no verdict";
  }
  return "";
}

std::string_view word(ComparisonVerdict verdict) {
  switch (verdict) {
    case ComparisonVerdict::NoRegression:
      return "no regression";
    case ComparisonVerdict::Regression:
      return "regression";
    case ComparisonVerdict::NotAlike:
      return "no verdict";
  }
  return "";
}

// Both are costs: more is worse.
Drift drift_of(double ratio, double threshold) {
  if (ratio > 1 + threshold) return Drift::Regression;
  if (ratio < 1 - threshold) return Drift::Improvement;
  return Drift::None;
}

Drift time_drift(const ComparedRun& row, double threshold) {
  const Drift drift = drift_of(row.time_ratio, threshold);
  const double difference = std::abs(row.step_ms - row.stored_ms);
  const bool is_noise = !row.noise_ms || difference <= *row.noise_ms;
  return drift != Drift::None && is_noise ? Drift::Noise : drift;
}

// Keys with different JSON values; a missing key is "absent". A key at its default that an older
// Weft lacked does not differ.
std::vector<std::string> differing_keys(const config::Config& now, const StoredRun& stored) {
  std::vector<std::string> keys;
  for (const config::Field& field : config::fields()) {
    const auto before = stored.config.find(field.key);
    const std::string value =
        field.get(now).dump(-1, ' ', true, base::Json::error_handler_t::replace);
    if (before != stored.config.end() && before->second == value) continue;
    if (before == stored.config.end() && config::is_default(field, now)) continue;
    keys.push_back(text("{}: {} -> {}",
                        field.key,
                        before == stored.config.end() ? "absent" : config::shown(before->second),
                        config::shown(value)));
  }
  for (const auto& [key, value] : stored.config) {
    if (config::find_field(key) != nullptr) continue;
    keys.push_back(text("{}: {} -> absent", config::shown(key), config::shown(value)));
  }
  return keys;
}

ComparedRun compare_run(const PerfReport& report,
                        std::size_t index,
                        const StoredRun& stored,
                        const Thresholds& thresholds) {
  const measure::PerfRun& run = report.runs[index];
  const Candidate& candidate = report.plan.candidates[index];
  ComparedRun row{.value = candidate.value,
                  .stored_ms = stored.step_ms,
                  .step_ms = run.steady_ms->mean,
                  .stored_bytes = stored.peak_bytes,
                  .peak_bytes = static_cast<double>(run.total_peak_bytes())};
  row.time_ratio = row.step_ms / row.stored_ms;
  row.noise_ms = noise_ms({.deviation_ms = run.steady_ms->deviation, .steps = run.window->steps()},
                          {.deviation_ms = stored.spread_ms, .steps = stored.window.steps()});
  row.time = time_drift(row, thresholds.time);
  if (row.stored_bytes > 0) {
    row.memory_ratio = row.peak_bytes / row.stored_bytes;
    row.memory = drift_of(row.memory_ratio, thresholds.memory);
  }
  row.keys = differing_keys(candidate.config, stored);
  return row;
}

std::vector<std::string> unlike_machine(const Machine& machine, const StoredResult& stored) {
  std::vector<std::string> reasons;
  const Json now = to_json(machine);
  for (const auto& [key, value] : now.items()) {
    if (key == "version") continue;  // versions may differ in a comparison
    const auto before = stored.machine.find(key);
    const std::string own = value.dump(-1, ' ', true, Json::error_handler_t::replace);
    if (before != stored.machine.end() && before->second == own) continue;
    reasons.push_back(
        text("the machine's {} was {} and is {}",
             key,
             before == stored.machine.end() ? "not said" : config::shown(before->second),
             config::shown(own)));
  }
  return reasons;
}

void note_window(const measure::PerfRun& run, const StoredRun& stored, Comparison& comparison) {
  if (*run.window == stored.window) return;
  comparison.unlike.push_back(text("{}: steps [{}, {}) were timed, and now [{}, {})",
                                   config::shown(stored.value),
                                   stored.window.first,
                                   stored.window.end,
                                   run.window->first,
                                   run.window->end));
}

std::vector<std::string> values_of(const StoredResult& stored) {
  std::vector<std::string> values;
  for (const StoredRun& run : stored.runs) values.push_back(config::shown(run.value));
  return values;
}

std::string row_text(const ComparedRun& run) {
  std::string all = text(
      "  {}: {:.2f} ms -> {:.2f} ms, ratio {:.3f}, noise {} ({}); memory {} -> {}, ratio {:.3f} "
      "({})\n",
      run.value,
      run.stored_ms,
      run.step_ms,
      run.time_ratio,
      run.noise_ms ? text("{:.2f} ms", *run.noise_ms) : "unknown, of one step",
      word(run.time),
      base::human_bytes(run.stored_bytes),
      base::human_bytes(run.peak_bytes),
      run.memory_ratio,
      word(run.memory));
  for (const std::string& key : run.keys) all += text("    differs: {}\n", key);
  return all;
}

std::string verdict_text(const Comparison& comparison) {
  const std::string thresholds = text("thresholds: time {:.0f} %, memory {:.0f} %",
                                      comparison.thresholds.time * 100,
                                      comparison.thresholds.memory * 100);
  switch (comparison.verdict()) {
    case ComparisonVerdict::Regression:
      return text("  REGRESSION ({})\n", thresholds);
    case ComparisonVerdict::NoRegression:
      return text("  no regression ({})\n", thresholds);
    case ComparisonVerdict::NotAlike:
      return "  not like with like: no verdict\n";
  }
  return "";
}

}  // namespace

bool Comparison::like_with_like() const {
  return unlike.empty() &&
         std::ranges::all_of(runs, [](const ComparedRun& run) { return run.keys.empty(); });
}

ComparisonVerdict Comparison::verdict() const {
  if (!like_with_like()) return ComparisonVerdict::NotAlike;
  const bool regressed = std::ranges::any_of(runs, [](const ComparedRun& run) {
    return run.time == Drift::Regression || run.memory == Drift::Regression;
  });
  return regressed ? ComparisonVerdict::Regression : ComparisonVerdict::NoRegression;
}

Comparison compare(const PerfReport& report,
                   const StoredResult& stored,
                   const Thresholds& thresholds) {
  Comparison comparison{.runs = {},
                        .unmatched = {},
                        .unlike = unlike_machine(report.machine, stored),
                        .thresholds = thresholds};
  for (std::size_t i = 0; i < report.runs.size(); ++i) {
    if (!report.runs[i].window) continue;
    const std::string& value = report.plan.candidates[i].value;
    const auto partner = std::ranges::find(stored.runs, value, &StoredRun::value);
    if (partner == stored.runs.end()) {
      comparison.unmatched.push_back(value);
      continue;
    }
    comparison.runs.push_back(compare_run(report, i, *partner, thresholds));
    note_window(report.runs[i], *partner, comparison);
  }
  if (!comparison.like_with_like()) {
    for (ComparedRun& run : comparison.runs) run.time = run.memory = Drift::Unjudged;
  }
  return comparison;
}

void require_partner(const PerfPlan& plan, const StoredResult& stored) {
  const bool some = std::ranges::any_of(plan.candidates, [&](const Candidate& candidate) {
    return std::ranges::find(stored.runs, candidate.value, &StoredRun::value) != stored.runs.end();
  });
  if (some) return;
  throw base::ConfigError(
      text("--against: the stored result has runs of {}, and none of them is run now: run the same "
           "--vary",
           fmt::join(values_of(stored), ", ")));
}

Json to_json(const Comparison& comparison) {
  Json runs = Json::array();
  for (const ComparedRun& run : comparison.runs) {
    runs.push_back({{"value", run.value},
                    {"stored_ms", run.stored_ms},
                    {"step_ms", run.step_ms},
                    {"time_ratio", run.time_ratio},
                    {"noise_ms", run.noise_ms ? Json(*run.noise_ms) : Json()},
                    {"time", word(run.time)},
                    {"stored_bytes", run.stored_bytes},
                    {"peak_bytes", run.peak_bytes},
                    {"memory_ratio", run.memory_ratio},
                    {"memory", word(run.memory)},
                    {"keys", run.keys}});
  }
  return {{"verdict", word(comparison.verdict())},
          {"regressed", comparison.verdict() == ComparisonVerdict::Regression},
          {"timing_threshold", comparison.thresholds.time},
          {"memory_threshold", comparison.thresholds.memory},
          {"like_with_like", comparison.like_with_like()},
          {"unlike", comparison.unlike},
          {"unmatched", comparison.unmatched},
          {"runs", std::move(runs)}};
}

std::string to_text(const Comparison& comparison) {
  std::string all = "against the stored result:\n";
  for (const ComparedRun& run : comparison.runs) all += row_text(run);
  for (const std::string& value : comparison.unmatched) {
    all += text("  {}: not in the stored result\n", value);
  }
  for (const std::string& reason : comparison.unlike) {
    all += text("  not like with like: {}\n", reason);
  }
  return all + verdict_text(comparison);
}

}  // namespace weft::cli
