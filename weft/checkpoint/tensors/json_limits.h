// JSON of bounded size (strict_json.h) and bounded object keys.
#pragma once

#include "weft/checkpoint/tensors/strict_json.h"

namespace weft::checkpoint {

struct JsonLimits {
  std::size_t bytes = kLargestJson;
  std::size_t members = std::size_t{1} << 20;  // keys of one object
};

StrictJson parse_within(const JsonLimits& limits, std::string_view bytes, const std::string& file);

}  // namespace weft::checkpoint
