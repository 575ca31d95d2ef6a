// WHICH DATA DO THE KEYS MEAN? A recipe, a file or the words may name data beside those that were
// named before.
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

// `keys` are those that were just set on top of `config`. Data that they name replace data that
// were named before: dataset.path, dataset.blend and dataset.blend_per_split give way to each
// other. Where they name data and no dataset.kind, the kind is found from the path: the path of
// .bin and .idx is indexed, a file or folder is text. Nothing is found where the path leads nowhere
// on this machine: the kind named before holds, and where that is mock train::prepare() complains.
DataMeant settle_data(std::span<const std::string> keys, config::Config& config);

}  // namespace weft::words
