// `weft perf --against FILE`: comparison with a stored result, and a check that both measured the
// same.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "weft/cli/perf/perf_noise.h"
#include "weft/cli/perf/perf_report.h"

namespace weft::cli {

// Part of a stored result.json for a comparison.
struct StoredRun {
  std::string value;
  double step_ms = 0;
  double spread_ms = 0;
  double peak_bytes = 0;
  measure::Window window;
  std::map<std::string, std::string> config;  // key to value in JSON
};

struct StoredResult {
  std::vector<StoredRun> runs;  // timed runs
  std::map<std::string, std::string> machine;
};

// ConfigError with file and place if the file is no result of weft perf. The file is untrusted.
StoredResult read_stored(const std::filesystem::path& file);

struct Thresholds {
  double time = 0.05;    // share of the stored step time
  double memory = 0.05;  // share of the stored peak
};

// Change relative to the threshold, in either direction.
enum class Drift {
  None,
  Noise,  // beyond the threshold, within the spread of the steps
  Regression,
  Improvement,
  Unjudged,  // the runs are not comparable
};

struct ComparedRun {
  std::string value;
  double stored_ms = 0, step_ms = 0, time_ratio = 0;
  std::optional<double> noise_ms = {};  // nullopt: one of them has a single step
  double stored_bytes = 0, peak_bytes = 0, memory_ratio = 0;
  Drift time = Drift::None, memory = Drift::None;
  std::vector<std::string> keys = {};  // differing keys: "a.b: stored -> now"
};

enum class ComparisonVerdict { NoRegression, Regression, NotAlike };

struct Comparison {
  std::vector<ComparedRun> runs;
  std::vector<std::string> unmatched;  // values missing in the stored result
  std::vector<std::string> unlike;  // differences of machine and window that prevent a comparison
  Thresholds thresholds;

  // True if machine, window and all keys are equal; Weft's version may differ.
  bool like_with_like() const;
  ComparisonVerdict verdict() const;
};

// ConfigError if no run of the plan has a stored run of equal value. Call before any run.
void require_partner(const PerfPlan& plan, const StoredResult& stored);

// Compares the timed runs.
Comparison compare(const PerfReport& report,
                   const StoredResult& stored,
                   const Thresholds& thresholds);

base::Json to_json(const Comparison& comparison);
std::string to_text(const Comparison& comparison);

}  // namespace weft::cli
