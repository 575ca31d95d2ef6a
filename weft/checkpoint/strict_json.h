// JSON from files nobody vouches for: bounded size and depth, no duplicate keys, and typed access
// whose errors name the file, the key, what was expected and what was found.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "weft/base/json.h"

namespace weft::checkpoint {

using StrictJson = base::SortedJson;

inline constexpr std::size_t kLargestJson = std::size_t{32} << 20;  // bytes

// ConfigError, naming `file`, where `bytes` is not one JSON object within these limits.
StrictJson parse_object(std::string_view bytes,
                        const std::string& file,
                        std::size_t most_bytes = kLargestJson);

// The same of JSON as Python writes it, with NaN, Infinity and -Infinity: they are read as words,
// so that a key that wants a number refuses them and the others do not care.
StrictJson parse_python_object(std::string_view bytes, const std::string& file);

// The value for an error text: printable ASCII, cut short where long.
std::string shown(const StrictJson& value);

struct Range {
  double low;
  double high;
};

// A value as a type; `key` and `file` are for the error.
std::int64_t as_integer(const StrictJson& value,
                        std::string_view key,
                        const std::string& file,
                        std::int64_t low,
                        std::int64_t high);
double as_number(const StrictJson& value,
                 std::string_view key,
                 const std::string& file,
                 Range range);
bool as_flag(const StrictJson& value, std::string_view key, const std::string& file);
const std::string& as_word(const StrictJson& value, std::string_view key, const std::string& file);

// The member `key` of `object`; ConfigError where it is missing.
const StrictJson& member(const StrictJson& object, const char* key, const std::string& file);

[[noreturn]] void throw_wrong_value(const StrictJson& value,
                                    std::string_view key,
                                    const std::string& file,
                                    const std::string& expected);

}  // namespace weft::checkpoint
