// The data sets that a run evaluates on beside what it holds out of its own data.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weft/config/config.h"

namespace weft::derive {

struct EvaluationSet {
  std::string name;  // given as NAME=PATH, or the last part of the path
  std::string path;
};

// One of each entry of dataset.valid_data_path, in their order.
std::vector<EvaluationSet> evaluation_sets_of(const config::DatasetConfig& dataset);

// Where the path begins in an entry: behind `NAME=`, where the name has no slash.
std::size_t path_begin(std::string_view entry);

}  // namespace weft::derive
