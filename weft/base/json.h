// JSON is nlohmann's; this header gives it one name here.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace weft::base {

using Json = nlohmann::ordered_json;

// What a parser or a look into a value found wrong, without the library's name for it; it may quote
// the text, so only what prints is kept.
std::string reason_of(const nlohmann::json::exception& error);

}  // namespace weft::base
