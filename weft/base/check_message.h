// CHECK's message in code that nvcc compiles. Numbers and words are passed as plain values to a
// function that formats them: nvcc parses no fmt.
#pragma once

#include <concepts>
#include <initializer_list>
#include <string_view>
#include <type_traits>

namespace weft::base {

class CheckValue {
 public:
  enum class Kind { Signed, Unsigned, Word };

  template <std::integral T>
  CheckValue(T value)
      : kind(std::is_signed_v<T> ? Kind::Signed : Kind::Unsigned),
        number(static_cast<long long>(value)) {}
  CheckValue(std::string_view text) : kind(Kind::Word), word(text) {}

  const Kind kind;
  const long long number = 0;
  const std::string_view word;
};

// Format whose {} match the number of values, checked at compile time.
template <int kValues>
struct CheckFormat {
  consteval CheckFormat(const char* format) : text(format) {
    int places = 0;
    for (const char* c = format; *c != 0; ++c) places += *c == '{' ? 1 : 0;
    if (places != kValues) throw "a CHECK has other values than its text";
  }
  std::string_view text;
};

[[noreturn]] void check_failed_with(const char* file,
                                    int line,
                                    const char* condition,
                                    std::string_view format,
                                    std::initializer_list<CheckValue> values);

template <typename... Values>
[[noreturn]] void check_failed(const char* file,
                               int line,
                               const char* condition,
                               std::type_identity_t<CheckFormat<int(sizeof...(Values))>> format,
                               const Values&... values) {
  check_failed_with(file, line, condition, format.text, {CheckValue(values)...});
}

}  // namespace weft::base
