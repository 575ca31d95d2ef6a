// `weft perf --against FILE`: is this slower than a stored result, and was it the same thing?
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "weft/cli/perf/perf_noise.h"
#include "weft/cli/perf/perf_report.h"

namespace weft::cli {

// What a comparison needs of a stored result.json.
struct StoredRun {
  std::string value;
  double step_ms = 0;
  double spread_ms = 0;
  double peak_bytes = 0;
  measure::Window window;
  std::map<std::string, std::string> config;  // key to value, as JSON writes it
};

struct StoredResult {
  std::vector<StoredRun> runs;  // those that were timed
  std::map<std::string, std::string> machine;
};

// ConfigError, naming the file and the place, where it is no result of weft perf. The file is
// trusted with nothing.
StoredResult read_stored(const std::filesystem::path& file);

struct Thresholds {
  double time = 0.05;    // share of the stored step time
  double memory = 0.05;  // share of the stored peak
};

// Against the threshold, either way.
enum class Drift {
  None,
  Noise,  // beyond the threshold, but not beyond what the spread of the steps explains
  Regression,
  Improvement,
  Unjudged,  // not like with like
};

struct ComparedRun {
  std::string value;
  double stored_ms = 0, step_ms = 0, time_ratio = 0;
  std::optional<double> noise_ms = {};  // none where one of them has a single step
  double stored_bytes = 0, peak_bytes = 0, memory_ratio = 0;
  Drift time = Drift::None, memory = Drift::None;
  std::vector<std::string> keys = {};  // that differ: "a.b: stored -> now"
};

enum class ComparisonVerdict { NoRegression, Regression, NotAlike };

struct Comparison {
  std::vector<ComparedRun> runs;
  std::vector<std::string> unmatched;  // values that the stored result has not
  std::vector<std::string> unlike;     // machine and window: why it is not like with like
  Thresholds thresholds;

  // Neither machine, window nor any key differs; the version of Weft may.
  bool like_with_like() const;
  ComparisonVerdict verdict() const;
};

// ConfigError where no run of the plan has a partner of the same value: asked before anything runs.
void require_partner(const PerfPlan& plan, const StoredResult& stored);

// Of the runs that were timed.
Comparison compare(const PerfReport& report,
                   const StoredResult& stored,
                   const Thresholds& thresholds);

base::Json to_json(const Comparison& comparison);
std::string to_text(const Comparison& comparison);

}  // namespace weft::cli
