// Runs of `weft bench predict`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weft/cli/arguments.h"
#include "weft/measure/bench/predict_bench.h"

namespace weft::cli {

// Layouts: layouts of one recipe, with ranks as threads, over several emulated links. Models:
// several shapes at three token counts, one rank of eight over loopback.
enum class PredictSet { Layouts, Models };
std::string_view word(PredictSet set);

struct PredictRuns {
  config::Config calibrating;
  std::vector<measure::PredictCase> cases;
};

// The user's words come last for models, and before a layout's own words for layouts.
PredictRuns predict_runs(const RunArguments& arguments, PredictSet set);

}  // namespace weft::cli
