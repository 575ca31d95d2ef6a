#include "weft/checkpoint/strict_json.h"

#include <cmath>
#include <set>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/json.h"
#include "weft/base/text.h"

namespace weft::checkpoint {
namespace {

using base::text;

constexpr int kDeepest = 16;
constexpr std::size_t kShownCharacters = 80;

// Watches a parse: throws on the first duplicate key and on nesting past kDeepest.
class Watch {
 public:
  explicit Watch(const std::string& file) : file_(file) {}

  bool operator()(int depth, StrictJson::parse_event_t event, const StrictJson& parsed) {
    using Event = StrictJson::parse_event_t;
    if (depth > kDeepest) {
      throw base::ConfigError(text("'{}': JSON nested deeper than {} levels", file_, kDeepest));
    }
    if (event == Event::object_start) keys_.emplace_back();
    if (event == Event::object_end) keys_.pop_back();
    if (event == Event::key && !keys_.back().insert(parsed.get<std::string>()).second) {
      throw base::ConfigError(text("'{}': key {} appears twice", file_, shown(parsed)));
    }
    return true;
  }

 private:
  const std::string& file_;
  std::vector<std::set<std::string>> keys_;
};

}  // namespace

StrictJson parse_object(std::string_view bytes, const std::string& file, std::size_t most_bytes) {
  if (bytes.size() > most_bytes) {
    throw base::ConfigError(
        text("'{}': {} bytes of JSON; at most {} are read", file, bytes.size(), most_bytes));
  }
  StrictJson parsed;
  try {
    Watch watch(file);
    parsed = base::parse_sorted_json(
        bytes,
        [&watch](int depth, StrictJson::parse_event_t event, StrictJson& value) {
          return watch(depth, event, value);
        });
  } catch (const StrictJson::exception& error) {
    throw base::ConfigError(text("'{}' is not valid JSON: {}", file, base::reason_of(error)));
  }
  if (!parsed.is_object()) {
    throw base::ConfigError(text("'{}': a JSON object expected, found {}", file, shown(parsed)));
  }
  return parsed;
}

std::string shown(const StrictJson& value) {
  std::string line =
      value.dump(-1, ' ', /*ensure_ascii=*/true, StrictJson::error_handler_t::replace);
  if (line.size() > kShownCharacters) line = line.substr(0, kShownCharacters) + "...";
  return line;
}

void throw_wrong_value(const StrictJson& value,
                       std::string_view key,
                       const std::string& file,
                       const std::string& expected) {
  throw base::ConfigError(text("'{}': {} is {}; {} expected", file, key, shown(value), expected));
}

std::int64_t as_integer(const StrictJson& value,
                        std::string_view key,
                        const std::string& file,
                        std::int64_t low,
                        std::int64_t high) {
  const bool fits = value.is_number_unsigned()
                        ? value.get<std::uint64_t>() <= static_cast<std::uint64_t>(INT64_MAX)
                        : value.is_number_integer();
  if (!fits || value.get<std::int64_t>() < low || value.get<std::int64_t>() > high) {
    throw_wrong_value(value, key, file, text("a whole number in [{}, {}]", low, high));
  }
  return value.get<std::int64_t>();
}

double as_number(const StrictJson& value,
                 std::string_view key,
                 const std::string& file,
                 Range range) {
  if (!value.is_number() || !std::isfinite(value.get<double>()) ||
      value.get<double>() < range.low || value.get<double>() > range.high) {
    throw_wrong_value(value, key, file, text("a number in [{}, {}]", range.low, range.high));
  }
  return value.get<double>();
}

bool as_flag(const StrictJson& value, std::string_view key, const std::string& file) {
  if (!value.is_boolean()) throw_wrong_value(value, key, file, "true or false");
  return value.get<bool>();
}

const std::string& as_word(const StrictJson& value, std::string_view key, const std::string& file) {
  if (!value.is_string()) throw_wrong_value(value, key, file, "text");
  return value.get_ref<const std::string&>();
}

const StrictJson& member(const StrictJson& object, const char* key, const std::string& file) {
  const auto found = object.find(key);
  if (found == object.end()) throw base::ConfigError(text("'{}': {} is missing", file, key));
  return *found;
}

}  // namespace weft::checkpoint
