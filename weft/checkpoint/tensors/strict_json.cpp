#include "weft/checkpoint/tensors/strict_json.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/checkpoint/tensors/json_limits.h"

namespace weft::checkpoint {
namespace {

using base::text;

constexpr std::size_t kShownCharacters = 80;

constexpr int kDeepest = 16;

// Builds the value during parsing, in linear time. Throws on the first duplicate key, nesting
// deeper than kDeepest, or an object with too many keys.
class StrictBuilder : public nlohmann::json_sax<StrictJson> {
 public:
  StrictBuilder(const std::string& file, std::size_t most_members)
      : file_(file), most_members_(most_members) {}

  StrictJson take() { return std::move(root_); }

  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(number_integer_t value) override { return put(value); }
  bool number_unsigned(number_unsigned_t value) override { return put(value); }
  bool number_float(number_float_t value, const string_t&) override { return put(value); }
  bool string(string_t& value) override { return put(std::move(value)); }
  bool binary(binary_t&) override { return false; }

  bool start_object(std::size_t) override { return open(StrictJson::object()); }
  bool start_array(std::size_t) override { return open(StrictJson::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    auto& members = open_.back()->get_ref<StrictJson::object_t&>();
    const auto [at, is_new] = members.try_emplace(name);
    if (!is_new) {
      throw base::ConfigError(text("'{}': key {} appears twice", file_, shown(StrictJson(name))));
    }
    if (members.size() > most_members_) {
      throw base::ConfigError(
          text("'{}': an object of more than {} keys, of which {} is one; that many are read",
               file_,
               most_members_,
               shown(StrictJson(name))));
    }
    slot_ = &at->second;
    return true;
  }

  bool parse_error(std::size_t,
                   const std::string&,
                   const nlohmann::json::exception& error) override {
    throw base::ConfigError(text("'{}' is not valid JSON: {}", file_, base::reason_of(error)));
  }

 private:
  // Slot of the next value.
  StrictJson& next() {
    if (open_.empty()) return root_;
    if (open_.back()->is_object()) return *slot_;
    return open_.back()->get_ref<StrictJson::array_t&>().emplace_back();
  }

  template <typename Value>
  bool put(Value&& value) {
    next() = std::forward<Value>(value);
    return true;
  }

  // Pointers to outer values stay valid: nothing is added to them before the inner value closes.
  bool open(StrictJson value) {
    if (std::ssize(open_) >= kDeepest) {
      throw base::ConfigError(text("'{}': JSON nested deeper than {} levels", file_, kDeepest));
    }
    StrictJson& place = next();
    place = std::move(value);
    open_.push_back(&place);
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  const std::string& file_;
  std::size_t most_members_;
  StrictJson root_;
  StrictJson* slot_ = nullptr;
  std::vector<StrictJson*> open_;
};

constexpr std::array<std::string_view, 3> kNotFinite{"-Infinity", "Infinity", "NaN"};

// Content with quotes added around unquoted non-finite numbers.
std::string with_quoted_infinities(std::string_view content) {
  std::string quoted;
  quoted.reserve(content.size());
  bool is_inside = false;
  while (!content.empty()) {
    const auto word = std::ranges::find_if(kNotFinite, [&](std::string_view name) {
      return !is_inside && content.starts_with(name);
    });
    if (word != kNotFinite.end()) {
      quoted += text("\"{}\"", *word);
      content.remove_prefix(word->size());
      continue;
    }
    const std::size_t escaped = is_inside && content.front() == '\\' ? 2 : 1;
    if (content.front() == '"') is_inside = !is_inside;
    quoted += content.substr(0, escaped);
    content.remove_prefix(std::min(escaped, content.size()));
  }
  return quoted;
}

}  // namespace

StrictJson parse_within(const JsonLimits& limits, std::string_view bytes, const std::string& file) {
  if (bytes.size() > limits.bytes) {
    throw base::ConfigError(
        text("'{}': {} bytes of JSON; at most {} are read", file, bytes.size(), limits.bytes));
  }
  StrictBuilder builder(file, limits.members);
  StrictJson::sax_parse(bytes, &builder);
  StrictJson parsed = builder.take();
  if (!parsed.is_object()) {
    throw base::ConfigError(text("'{}': a JSON object expected, found {}", file, shown(parsed)));
  }
  return parsed;
}

StrictJson parse_object(std::string_view bytes, const std::string& file, std::size_t most_bytes) {
  return parse_within({.bytes = most_bytes}, bytes, file);
}

StrictJson parse_python_object(std::string_view bytes, const std::string& file) {
  return parse_object(with_quoted_infinities(bytes), file);
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
