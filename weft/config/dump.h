// Writes a whole config: as YAML that loads back to an equal config, and as JSON.
#pragma once

#include <string>

#include "weft/base/json.h"
#include "weft/config/config.h"

namespace weft::config {

std::string to_yaml(const Config& config);
base::Json to_json(const Config& config);

}  // namespace weft::config
