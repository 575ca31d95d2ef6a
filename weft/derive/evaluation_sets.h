// Data sets for evaluation, besides the held-out part of the training data.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weft/config/config.h"

namespace weft::derive {

struct EvaluationSet {
  std::string name;  // from NAME=PATH, or the last part of the path
  std::string path;
};

// One per entry of dataset.valid_data_path, in order.
std::vector<EvaluationSet> evaluation_sets_of(const config::DatasetConfig& dataset);

// Start of the path in an entry: after `NAME=` if the name has no slash, else 0.
std::size_t path_begin(std::string_view entry);

}  // namespace weft::derive
