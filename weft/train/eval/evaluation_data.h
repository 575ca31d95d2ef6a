// Opened data sets of dataset.valid_data_path.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "weft/config/config.h"
#include "weft/data/dataset.h"

namespace weft::train {

// All samples are in the split Train. Their order is fixed for every rng.seed: each evaluation
// reads the same samples, and runs with different seeds compare.
struct EvaluationData {
  std::string name;
  std::unique_ptr<data::Dataset> dataset;
};

// Empty if the run does not evaluate. ConfigError with every set that does not fit the run.
std::vector<EvaluationData> open_evaluation_data(const config::Config& config);

}  // namespace weft::train
