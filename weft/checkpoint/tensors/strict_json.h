// JSON from untrusted files: bounded size and depth, no duplicate keys. Typed access throws errors
// with file, key, expected and found value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "weft/base/json.h"

namespace weft::checkpoint {

using StrictJson = base::SortedJson;

inline constexpr std::size_t kLargestJson = std::size_t{32} << 20;  // bytes

// ConfigError, naming `file`, unless `bytes` is one JSON object within these limits.
StrictJson parse_object(std::string_view bytes,
                        const std::string& file,
                        std::size_t most_bytes = kLargestJson);

// Variant for JSON as Python writes it. NaN, Infinity and -Infinity become strings, which keys with
// numbers reject.
StrictJson parse_python_object(std::string_view bytes, const std::string& file);

// Value for an error text: printable ASCII, shortened if long.
std::string shown(const StrictJson& value);

struct Range {
  double low;
  double high;
};

// Typed value; `key` and `file` are for the error.
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

// Member `key` of `object`; ConfigError if missing.
const StrictJson& member(const StrictJson& object, const char* key, const std::string& file);

[[noreturn]] void throw_wrong_value(const StrictJson& value,
                                    std::string_view key,
                                    const std::string& file,
                                    const std::string& expected);

}  // namespace weft::checkpoint
