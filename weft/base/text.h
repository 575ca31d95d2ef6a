// Text: fmt wrapped once (g++ 12 has no std::format), and a few string helpers.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weft::base {

template <typename... Args>
std::string text(fmt::format_string<Args...> format, Args&&... args) {
  return fmt::format(format, std::forward<Args>(args)...);
}

// Candidate with the smallest edit distance to `word`, if at most a third of the letters differ.
std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates);

std::vector<std::string> split(std::string_view line, char separator);
std::string_view trim(std::string_view line);

// Whole-string conversions; nullopt: trailing text, or out of range.
std::optional<long long> parse_integer(std::string_view word);
std::optional<double> parse_number(std::string_view word);

// 1536 -> "1.5 KiB".
std::string human_bytes(double bytes);

// Number with its noun: "1 step", "2 steps", "0 micro-batches".
std::string counted(std::int64_t count, std::string_view noun);
// Noun alone: "step" for one, else "steps".
std::string plural(std::int64_t count, std::string_view noun);
// Word with its article: "a tiny model", "an olmoe model".
std::string with_article(std::string_view word);

// Untrusted text (typed, or read from a file) for a message: on one line, without control
// characters, shortened.
std::string shown(std::string_view text);
// Untrusted message: lines are kept and nothing is cut, but control characters are removed.
std::string without_controls(std::string_view text);

}  // namespace weft::base
