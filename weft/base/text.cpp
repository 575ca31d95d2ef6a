#include "weft/base/text.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <utility>

#include "weft/base/visible.h"

namespace weft::base {
namespace {

// Number of letters to add, drop, change, or swap with a neighbour.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before, above(b.size() + 1), row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before = std::exchange(above, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substitute = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({substitute, above[j] + 1, row[j - 1] + 1});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

template <typename Number>
std::optional<Number> parse_whole(std::string_view word) {
  Number value{};
  const auto [end, status] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (status != std::errc{} || end != word.data() + word.size() || word.empty())
    return std::nullopt;
  return value;
}

bool ends_in_any(std::string_view word, std::initializer_list<std::string_view> endings) {
  return std::ranges::any_of(endings, [&](std::string_view end) { return word.ends_with(end); });
}

}  // namespace

std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates) {
  std::optional<std::string> best;
  std::size_t best_distance = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::vector<std::string> split(std::string_view line, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t at = line.find(separator);
    parts.emplace_back(line.substr(0, at));
    if (at == std::string_view::npos) return parts;
    line.remove_prefix(at + 1);
  }
}

std::string_view trim(std::string_view line) {
  const std::string_view blanks = " \t\r\n";
  const std::size_t first = line.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return line.substr(first, line.find_last_not_of(blanks) - first + 1);
}

std::optional<long long> parse_integer(std::string_view word) {
  return parse_whole<long long>(word);
}

std::optional<double> parse_number(std::string_view word) { return parse_whole<double>(word); }

std::string human_bytes(double bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  int unit = 0;
  while (bytes >= 1024 && unit < 4) {
    bytes /= 1024;
    ++unit;
  }
  return unit == 0 ? text("{:.0f} B", bytes) : text("{:.1f} {}", bytes, kUnits[unit]);
}

std::string plural(std::int64_t count, std::string_view noun) {
  std::string word(noun);
  if (count == 1) return word;
  const bool vowel_before_y = ends_in_any(word, {"ay", "ey", "oy", "uy"});
  if (word.ends_with('y') && !vowel_before_y) {
    word.pop_back();
    return word + "ies";
  }
  return word + (ends_in_any(word, {"ch", "sh", "s", "x"}) ? "es" : "s");
}

std::string counted(std::int64_t count, std::string_view noun) {
  return text("{} {}", count, plural(count, noun));
}

std::string with_article(std::string_view word) {
  const bool vowel =
      !word.empty() && std::string_view("aeioAEIO").find(word.front()) != std::string_view::npos;
  return text("{} {}", vowel ? "an" : "a", word);
}

std::string shown(std::string_view raw) {
  constexpr std::size_t kShown = 80;
  const std::string_view part = shortened(raw, kShown);
  return part.size() < raw.size() ? visible(part) + "..." : visible(part);
}

std::string without_controls(std::string_view raw) { return visible(raw, Escapes::Lines); }

}  // namespace weft::base
