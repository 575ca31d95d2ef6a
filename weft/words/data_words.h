// Data keys of a run: a recipe, a file or the words may name data besides earlier ones.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "weft/config/config.h"
#include "weft/config/finding.h"

namespace weft::words {

struct DataMeant {
  std::vector<config::Finding> automatic, warnings;
  std::vector<std::string> complaints;
};

// Settles the data keys after `keys` were set in `config`. New data replace earlier data:
// dataset.path, dataset.blend and dataset.blend_per_split exclude each other. If they name data
// without dataset.kind, the path gives the kind: the path of .bin and .idx is indexed, a file or
// folder is text. For a path that does not exist on this machine the earlier kind stays; for mock
// train::prepare() then complains.
DataMeant settle_data(std::span<const std::string> keys, config::Config& config);

}  // namespace weft::words
