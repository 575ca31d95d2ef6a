// JSON is nlohmann's; this header gives it one name here.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace weft::base {

using Json = nlohmann::ordered_json;
// Sorted keys, for files that nobody vouches for: lookup stays logarithmic however many keys a file
// brings.
using SortedJson = nlohmann::json;

// The value that `text` holds; Json::exception where it is none. `watch` sees every part of it. The
// library's own parse() is compiled again wherever it is called, and takes seconds.
Json parse_json(std::string_view text, const Json::parser_callback_t& watch = nullptr);
SortedJson parse_sorted_json(std::string_view text,
                             const SortedJson::parser_callback_t& watch = nullptr);
// The same, and a discarded value (is_discarded()) where it is none.
Json try_parse_json(std::string_view text);
SortedJson try_parse_sorted_json(std::string_view text);

// What a parser or a look into a value found wrong, without the library's name for it; it may quote
// the text, so only what prints is kept.
std::string reason_of(const nlohmann::json::exception& error);

}  // namespace weft::base
