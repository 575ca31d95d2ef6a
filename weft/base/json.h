// JSON is nlohmann's; this header gives it one name here.
#pragma once

#include <nlohmann/json.hpp>

namespace weft::base {

using Json = nlohmann::ordered_json;

}  // namespace weft::base
