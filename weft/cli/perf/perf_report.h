// Report of `weft perf`: the runs, the contract of the measurement, and its validity.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "weft/base/json.h"
#include "weft/cli/perf/perf_noise.h"
#include "weft/cli/perf/perf_plan.h"
#include "weft/cli/run/machine.h"
#include "weft/measure/runs/perf_run.h"

namespace weft::cli {

inline constexpr const char* kPerfFormat = "weft perf 1";

// Progress of the runs.
enum class PerfState { Complete, Interrupted, Failed, Running };

struct PerfReport {
  std::string name;  // recipe; may be empty
  PerfPlan plan;
  Machine machine;
  measure::WindowOptions window;
  std::vector<measure::PerfRun> runs;  // results of the first candidates in order
  PerfState state = PerfState::Running;
  std::string failure;  // error of the failed run
  // Config file of the requested run behind a twin; empty: the run itself ran.
  std::filesystem::path asked_file = {};
};

// Reasons why the runs are not training-equivalent; empty: they are.
std::vector<std::string> benchmark_reasons(const PerfPlan& plan);
std::string label_of(const PerfPlan& plan);
// Sentence about the keys common to all runs.
std::string frozen_text(const PerfPlan& plan);

// Warning if ranks outnumber cores; empty: every rank has a core.
std::string crowding(const PerfPlan& plan, const Machine& machine);

// Time of the first run over this one's; 0: one of them has none.
double speedup(const PerfReport& report, std::size_t run);

// Difference from the first run; nullopt: it is the first, or one of them has no time.
std::optional<RunDifference> beside_first(const PerfReport& report, std::size_t run);

base::Json to_json(const PerfReport& report);
// Plan of a dry run.
base::Json to_json(const PerfPlan& plan);

// Command that prices the run behind a twin; empty: the run itself ran.
std::string price_command(const PerfReport& report);

}  // namespace weft::cli
