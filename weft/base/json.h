// Name for nlohmann's JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace weft::base {

using Json = nlohmann::ordered_json;
// JSON with sorted keys, for untrusted files: lookup stays logarithmic for any number of keys.
using SortedJson = nlohmann::json;

// Parses `text`; throws Json::exception if it is not JSON. `watch` sees every part. These functions
// save seconds of compile time, because the library's parse() is instantiated at every call.
Json parse_json(std::string_view text, const Json::parser_callback_t& watch = nullptr);
SortedJson parse_sorted_json(std::string_view text,
                             const SortedJson::parser_callback_t& watch = nullptr);
// As parse_json; returns a discarded value (is_discarded()) if `text` is not JSON.
Json try_parse_json(std::string_view text);
SortedJson try_parse_sorted_json(std::string_view text);

// Reason of a JSON exception, without the library's prefix. It may quote the text, so unprintable
// characters are removed.
std::string reason_of(const nlohmann::json::exception& error);

}  // namespace weft::base
