// Which runs `weft bench predict` predicts and measures.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weft/cli/arguments.h"
#include "weft/measure/bench/predict_bench.h"

namespace weft::cli {

// Layouts: of one recipe, ranks that are threads, over several emulated links.
// Models: of several shapes, one rank of eight over the loop-back, at three counts of tokens.
enum class PredictSet { Layouts, Models };
std::string_view word(PredictSet set);

struct PredictRuns {
  config::Config calibrating;
  std::vector<measure::PredictCase> cases;
};

// The words of the user come last where models are predicted, and before a layout's own where
// layouts are.
PredictRuns predict_runs(const RunArguments& arguments, PredictSet set);

}  // namespace weft::cli
