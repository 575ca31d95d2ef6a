// What `weft perf` found: the runs, the contract they were measured under, and what they may be
// taken for.
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

// How far the runs went.
enum class PerfState { Complete, Interrupted, Failed, Running };

struct PerfReport {
  std::string name;  // of the recipe; may be empty
  PerfPlan plan;
  Machine machine;
  measure::WindowOptions window;
  std::vector<measure::PerfRun> runs;  // of the first candidates, in order
  PerfState state = PerfState::Running;
  std::string failure;  // of the run that failed
  // File of the run that was asked for, which a twin stands in for; empty: the run itself ran.
  std::filesystem::path asked_file = {};
};

// Why the runs are no training runs; empty: they are training-equivalent.
std::vector<std::string> benchmark_reasons(const PerfPlan& plan);
std::string label_of(const PerfPlan& plan);
// What is the same in all runs, in a sentence.
std::string frozen_text(const PerfPlan& plan);

// Where ranks outnumber the cores: what the times are then about. Empty: every rank has a core.
std::string crowding(const PerfPlan& plan, const Machine& machine);

// Time of the first run over this one's; 0 where one of them has none.
double speedup(const PerfReport& report, std::size_t run);

// A run beside the first; nullopt: it is the first, or one of them was not timed.
std::optional<RunDifference> beside_first(const PerfReport& report, std::size_t run);

base::Json to_json(const PerfReport& report);
// The plan alone, of a dry run.
base::Json to_json(const PerfPlan& plan);

// The command that prices the run a twin stands in for; empty: the run itself ran.
std::string price_command(const PerfReport& report);

}  // namespace weft::cli
