#include "weft/config/list_sum.h"

#include <algorithm>
#include <cctype>

#include "weft/base/text.h"
#include "weft/config/codec.h"

namespace weft::config {
namespace {

using List = std::vector<std::string>;

// Reads `([0]*1+[1]*63)*1`: sums of products of lists, whole numbers and brackets.
class SumReader {
 public:
  explicit SumReader(std::string_view written) : rest_(written) {}

  std::optional<List> whole() {
    std::optional<List> list = sum();
    skip();
    return list && rest_.empty() ? list : std::nullopt;
  }

 private:
  // Maximum nesting.
  static constexpr int kDeepest = 16;

  void skip() {
    while (!rest_.empty() && std::isspace(static_cast<unsigned char>(rest_.front())) != 0) {
      rest_.remove_prefix(1);
    }
  }

  bool take(char mark) {
    skip();
    if (!rest_.starts_with(mark)) return false;
    rest_.remove_prefix(1);
    return true;
  }

  std::optional<List> sum() {
    std::optional<List> all = product();
    while (all && take('+')) {
      const std::optional<List> more = product();
      if (!more || all->size() + more->size() > kLongestList) return std::nullopt;
      all->insert(all->end(), more->begin(), more->end());
    }
    return all;
  }

  // One list, with integer factors before and behind it.
  std::optional<List> product() {
    std::optional<List> list;
    unsigned long long times = 1;
    do {
      if (const std::optional<unsigned long long> number = count()) {
        if (*number > kLongestList) return std::nullopt;
        times = std::min<unsigned long long>(times * *number, kLongestList + 1);
      } else if (std::optional<List> factor = list ? std::nullopt : bracket()) {
        list = std::move(factor);
      } else {
        return std::nullopt;
      }
    } while (take('*'));
    if (!list || times * list->size() > kLongestList) return std::nullopt;
    List repeated;
    for (unsigned long long i = 0; i < times; ++i) {
      repeated.insert(repeated.end(), list->begin(), list->end());
    }
    return repeated;
  }

  std::optional<unsigned long long> count() {
    skip();
    const auto end =
        std::ranges::find_if_not(rest_, [](unsigned char c) { return std::isdigit(c) != 0; });
    const auto digits = static_cast<std::size_t>(end - rest_.begin());
    if (digits == 0 || digits > 9) return std::nullopt;
    const auto number = base::parse_integer(rest_.substr(0, digits));
    rest_.remove_prefix(digits);
    return static_cast<unsigned long long>(*number);
  }

  std::optional<List> bracket() {
    if (take('(')) {
      if (++depth_ > kDeepest) return std::nullopt;
      std::optional<List> inside = sum();
      --depth_;
      return inside && take(')') ? inside : std::nullopt;
    }
    if (!take('[')) return std::nullopt;
    const std::size_t end = rest_.find(']');
    if (end == std::string_view::npos) return std::nullopt;
    List items;
    for (const std::string& item : base::split(rest_.substr(0, end), ',')) {
      const std::string_view word = base::trim(item);
      if (word.empty() || word.find_first_of("[()*+") != std::string_view::npos) {
        return std::nullopt;
      }
      items.emplace_back(word);
    }
    rest_.remove_prefix(end + 1);
    return items;
  }

  std::string_view rest_;
  int depth_ = 0;
};

}  // namespace

std::optional<std::vector<std::string>> expand_list_sum(std::string_view written) {
  const std::string_view sum = base::trim(written);
  if (sum.find_first_of("*+(") == std::string_view::npos) return std::nullopt;
  return SumReader(sum).whole();
}

}  // namespace weft::config
