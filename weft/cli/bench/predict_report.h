// Report of `weft bench predict`, as text and JSON.
#pragma once

#include <string>
#include <vector>

#include "weft/base/json.h"
#include "weft/cli/bench/predict_cases.h"
#include "weft/cli/terminal/bar.h"
#include "weft/measure/bench/predict_bench.h"

namespace weft::cli {

// Bars: steps within 10 % for ranks as threads, within 6 % for one rank on a device. The predicted
// fastest run of each group is the fastest, up to the spread of equal settings.
std::vector<Bar> bars_of(const measure::PredictBench& bench, PredictSet set);

std::string to_text(const measure::PredictBench& bench, PredictSet set);
base::Json to_json(const measure::PredictBench& bench, PredictSet set);

}  // namespace weft::cli
