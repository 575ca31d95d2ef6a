// Report of `weft bench predict`.
#pragma once

#include "weft/cli/bench/predict_cases.h"
#include "weft/measure/bench/predict_bench.h"
#include "weft/report/document/document.h"

namespace weft::cli {

// Bars: steps within 10 % for ranks as threads, within 6 % for one rank on a device. The predicted
// fastest run of each group is the fastest, up to the spread of equal settings.
report::Document document_of(const measure::PredictBench& bench, PredictSet set);

}  // namespace weft::cli
