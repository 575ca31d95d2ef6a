// Codecs of config values, one per type: parsing, JSON, and the type's name for the user.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "weft/base/json.h"
#include "weft/base/text.h"
#include "weft/config/auto_switch.h"
#include "weft/config/enums.h"

namespace weft::config {

// User's text for a key before its type is known: null, one word, or a list.
using Written = std::variant<std::monostate, std::string, std::vector<std::string>>;

// Upper limits; longer texts and lists are refused.
inline constexpr std::size_t kLongestText = 4096;
inline constexpr std::size_t kLongestList = 65536;

// Index of a word: exact, or ignoring case if exactly one matches.
std::optional<std::size_t> find_word(std::span<const std::string_view> words,
                                     std::string_view word);

enum class Shape { Scalar, Optional, List, OptionalList };

// Codec of a single word; `parse` returns nullopt if the word is not of the type.
template <typename T>
struct WordCodec {
  static_assert(std::is_enum_v<T>, "config fields hold numbers, switches, texts or enums");
  static std::optional<T> parse(const std::string& word) {
    const std::optional<std::size_t> at = find_word(EnumWords<T>::words, word);
    return at ? std::optional(static_cast<T>(*at)) : std::nullopt;
  }
  static base::Json json(T value) { return std::string(word(value)); }
  static std::string one() { return base::text("one of {}", fmt::join(EnumWords<T>::words, ", ")); }
  static std::string many() { return "words, each " + one(); }
  static std::string example() { return std::string(EnumWords<T>::words[0]); }
};

template <DType... kAllowed>
struct WordCodec<AllowedDType<kAllowed...>> {
  using Value = AllowedDType<kAllowed...>;
  static std::optional<Value> parse(const std::string& word) {
    const std::optional<std::size_t> at = find_word(Value::words, word);
    return at ? std::optional<Value>(Value::values[*at]) : std::nullopt;
  }
  static base::Json json(Value value) { return std::string(name_of(value)); }
  static std::string one() { return base::text("one of {}", fmt::join(Value::words, ", ")); }
  static std::string many() { return "words, each " + one(); }
  static std::string example() { return std::string(Value::words[0]); }
};

template <>
struct WordCodec<std::int64_t> {
  static std::optional<std::int64_t> parse(const std::string& word) {
    return base::parse_integer(word);
  }
  static base::Json json(std::int64_t value) { return value; }
  static std::string one() { return "integer"; }
  static std::string many() { return "integers"; }
  static std::string example() { return "8"; }
};

template <>
struct WordCodec<double> {
  static std::optional<double> parse(const std::string& word) {
    const std::optional<double> value = base::parse_number(word);
    return value && std::isfinite(*value) ? value : std::nullopt;
  }
  static base::Json json(double value) { return value; }
  static std::string one() { return "finite number"; }
  static std::string many() { return "finite numbers"; }
  static std::string example() { return "0.1"; }
};

template <>
struct WordCodec<bool> {
  static std::optional<bool> parse(const std::string& word) {
    if (word == "true" || word == "True") return true;
    if (word == "false" || word == "False") return false;
    return std::nullopt;
  }
  static base::Json json(bool value) { return value; }
  static std::string one() { return "true or false"; }
  static std::string many() { return "switches"; }
  static std::string example() { return "true"; }
};

template <>
struct WordCodec<AutoSwitch> {
  static std::optional<AutoSwitch> parse(const std::string& word) {
    if (word == "auto") return AutoSwitch::left_to_the_run();
    const std::optional<bool> value = WordCodec<bool>::parse(word);
    return value ? std::optional<AutoSwitch>(*value) : std::nullopt;
  }
  static base::Json json(AutoSwitch value) {
    return value.automatic ? base::Json("auto") : base::Json(value.on);
  }
  static std::string one() { return WordCodec<bool>::one() + ", or auto"; }
  static std::string many() { return "switches"; }
  static std::string example() { return "true"; }
};

template <>
struct WordCodec<std::string> {
  static std::optional<std::string> parse(const std::string& word);
  static base::Json json(const std::string& value) { return value; }
  static std::string one() { return "text"; }
  static std::string many() { return "texts"; }
  static std::string example() { return "words"; }
};

// Codec of a whole field: a value, a value or null, or a list. One word is a list of one.
template <typename T>
struct FieldCodec {
  static constexpr Shape shape = Shape::Scalar;
  static std::optional<T> parse(const Written& written) {
    const auto* word = std::get_if<std::string>(&written);
    return word != nullptr ? WordCodec<T>::parse(*word) : std::nullopt;
  }
  static base::Json json(const T& value) { return WordCodec<T>::json(value); }
  static std::string type() { return WordCodec<T>::one(); }
  static std::string example() { return WordCodec<T>::example(); }
};

template <typename T>
struct FieldCodec<std::vector<T>> {
  static constexpr Shape shape = Shape::List;
  static std::optional<std::vector<T>> parse(const Written& written) {
    if (const auto* word = std::get_if<std::string>(&written)) {
      return parse(Written(std::vector<std::string>{*word}));
    }
    const auto* words = std::get_if<std::vector<std::string>>(&written);
    if (words == nullptr || words->size() > kLongestList) return std::nullopt;
    std::vector<T> values;
    for (const std::string& word : *words) {
      const std::optional<T> value = word.empty() ? std::nullopt : WordCodec<T>::parse(word);
      if (!value) return std::nullopt;
      values.push_back(*value);
    }
    return values;
  }
  static base::Json json(const std::vector<T>& values) {
    base::Json list = base::Json::array();
    for (const T& value : values) list.push_back(WordCodec<T>::json(value));
    return list;
  }
  static std::string type() { return "list of " + WordCodec<T>::many(); }
  static std::string example() {
    if constexpr (std::is_enum_v<T>) {
      if constexpr (EnumWords<T>::words.size() > 1) {
        return base::text("[{},{}]", EnumWords<T>::words[0], EnumWords<T>::words[1]);
      }
    }
    return base::text("[{0},{0}]", WordCodec<T>::example());
  }
};

template <typename T>
struct FieldCodec<std::optional<T>> {
  static constexpr Shape shape =
      FieldCodec<T>::shape == Shape::List ? Shape::OptionalList : Shape::Optional;
  static std::optional<std::optional<T>> parse(const Written& written) {
    if (std::holds_alternative<std::monostate>(written)) return std::optional<T>();
    const std::optional<T> value = FieldCodec<T>::parse(written);
    if (!value) return std::nullopt;
    return std::optional<std::optional<T>>(std::in_place, value);
  }
  static base::Json json(const std::optional<T>& value) {
    return value ? FieldCodec<T>::json(*value) : base::Json(nullptr);
  }
  static std::string type() { return FieldCodec<T>::type() + " or null"; }
  static std::string example() { return FieldCodec<T>::example(); }
};

}  // namespace weft::config
