#include "weft/config/list_sum.h"

#include <algorithm>

#include "weft/base/text.h"
#include "weft/config/codec.h"

namespace weft::config {
namespace {

// The items of `[a,b]`; nothing where it is no list.
std::optional<std::vector<std::string>> items_of(std::string_view list) {
  if (list.size() < 2 || list.front() != '[' || list.back() != ']') return std::nullopt;
  std::vector<std::string> items;
  for (const std::string& item : base::split(list.substr(1, list.size() - 2), ',')) {
    const std::string_view word = base::trim(item);
    if (word.empty() || word.find_first_of("[]()*+") != std::string_view::npos) return std::nullopt;
    items.emplace_back(word);
  }
  return items;
}

// Adds what `[a,b]`, `[a,b]*n` or `n*[a,b]` stands for; false where it stands for nothing.
bool add_term(std::string_view term, std::vector<std::string>& all) {
  const std::size_t star = term.find('*');
  const bool counted = star != std::string_view::npos;
  const std::string_view first = base::trim(term.substr(0, star));
  const std::string_view second = counted ? base::trim(term.substr(star + 1)) : "1";
  const bool list_first = first.starts_with('[');
  const auto items = items_of(list_first ? first : second);
  const auto times = base::parse_integer(list_first ? second : first);
  if (!items || !times || *times < 0) return false;
  const std::size_t room = kLongestList - all.size();
  if (static_cast<unsigned long long>(*times) > room / items->size()) return false;
  for (long long i = 0; i < *times; ++i) all.insert(all.end(), items->begin(), items->end());
  return true;
}

}  // namespace

std::optional<std::vector<std::string>> expand_list_sum(std::string_view written) {
  std::string_view sum = base::trim(written);
  const bool bracketed = sum.size() >= 2 && sum.front() == '(' && sum.back() == ')';
  if (bracketed) sum = base::trim(sum.substr(1, sum.size() - 2));
  if (!bracketed && sum.find_first_of("*+") == std::string_view::npos) return std::nullopt;
  std::vector<std::string> all;
  for (const std::string& term : base::split(sum, '+')) {
    if (!add_term(base::trim(term), all)) return std::nullopt;
  }
  return all;
}

}  // namespace weft::config
