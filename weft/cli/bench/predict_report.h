// What `weft bench predict` found, for people and for programs.
#pragma once

#include <string>
#include <vector>

#include "weft/base/json.h"
#include "weft/cli/bench/predict_cases.h"
#include "weft/cli/terminal/bar.h"
#include "weft/measure/bench/predict_bench.h"

namespace weft::cli {

// Steps within 10 % where ranks are threads, within 6 % of one rank on a device; the fastest run of
// each group is the one that was predicted, or no more slower than runs of one setting differ.
std::vector<Bar> bars_of(const measure::PredictBench& bench, PredictSet set);

std::string to_text(const measure::PredictBench& bench, PredictSet set);
base::Json to_json(const measure::PredictBench& bench, PredictSet set);

}  // namespace weft::cli
