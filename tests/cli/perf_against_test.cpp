// Verdict of a comparison, on made-up times.
#include "weft/cli/perf/perf_against.h"

#include <gtest/gtest.h>

#include "weft/config/field.h"

namespace weft::cli {
namespace perf_against_test {

constexpr const char* kValue = "as configured";

rules::JudgedConfig judged_defaults() { return *rules::judge({}).judged; }

PerfReport report(double step_ms, double spread_ms) {
  PerfReport made;
  made.plan.candidates.push_back({.value = kValue, .config = judged_defaults()});
  made.machine = this_machine();
  measure::PerfRun run;
  run.window = measure::Window{.first = 2, .end = 6};
  run.steady_ms = measure::Steady{.mean = step_ms, .deviation = spread_ms};
  run.peak_bytes[0] = 1000;
  made.runs.push_back(run);
  return made;
}

StoredResult stored(double step_ms, double spread_ms) {
  StoredResult made;
  made.runs.push_back({.value = kValue,
                       .step_ms = step_ms,
                       .spread_ms = spread_ms,
                       .peak_bytes = 1000,
                       .window = {.first = 2, .end = 6},
                       .config = {}});
  const rules::JudgedConfig config = judged_defaults();
  for (const config::Field& field : config::fields()) {
    made.runs[0].config[field.key] = field.get(config).dump();
  }
  const base::Json machine = to_json(this_machine());
  for (const auto& [key, value] : machine.items()) made.machine[key] = value.dump();
  return made;
}

TEST(PerfAgainst, BeyondThresholdAndNoiseIsARegression) {
  const Comparison worse = compare(report(120, 1), stored(100, 1), {});
  EXPECT_TRUE(worse.like_with_like()) << to_text(worse);
  EXPECT_EQ(worse.runs[0].time, Drift::Regression);
  EXPECT_EQ(worse.verdict(), ComparisonVerdict::Regression);
  const Comparison better = compare(report(80, 1), stored(100, 1), {});
  EXPECT_EQ(better.runs[0].time, Drift::Improvement);
  EXPECT_EQ(better.verdict(), ComparisonVerdict::NoRegression);
}

TEST(PerfAgainst, TheSpreadMayExplainIt) {
  // 3 standard errors of four steps each: 3 * sqrt(15^2 / 4 * 2) = 31.8 ms.
  EXPECT_EQ(compare(report(120, 15), stored(100, 15), {}).runs[0].time, Drift::Noise);
  EXPECT_EQ(compare(report(135, 15), stored(100, 15), {}).runs[0].time, Drift::Regression);
  EXPECT_EQ(compare(report(103, 0), stored(100, 0), {}).runs[0].time, Drift::None);
}

TEST(PerfAgainst, AnotherMachineOrKeyGetsNoVerdict) {
  StoredResult elsewhere = stored(100, 1);
  elsewhere.machine["cpu"] = "\"an abacus\"";
  EXPECT_EQ(compare(report(200, 1), elsewhere, {}).verdict(), ComparisonVerdict::NotAlike);
  StoredResult seeded = stored(100, 1);
  seeded.runs[0].config["rng.seed"] = "7";
  EXPECT_EQ(compare(report(200, 1), seeded, {}).verdict(), ComparisonVerdict::NotAlike);
  StoredResult older = stored(100, 1);
  older.machine["version"] = "\"0.0.0\"";
  EXPECT_EQ(compare(report(200, 1), older, {}).verdict(), ComparisonVerdict::Regression);
}

}  // namespace perf_against_test
}  // namespace weft::cli
