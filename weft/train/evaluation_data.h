// The data sets of dataset.valid_data_path, opened.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "weft/config/config.h"
#include "weft/data/dataset.h"

namespace weft::train {

// All of its samples are in the split Train: in one order for good, whatever rng.seed, so that each
// evaluation reads the same ones and runs with other seeds compare.
struct EvaluationData {
  std::string name;
  std::unique_ptr<data::Dataset> dataset;
};

// None where the run does not evaluate. ConfigError with all sets that do not fit the run.
std::vector<EvaluationData> open_evaluation_data(const config::Config& config);

}  // namespace weft::train
