#include "weft/config/codec.h"

#include <algorithm>
#include <cctype>

namespace weft::config {
namespace {

bool is_utf8(const std::string& word) {
  try {
    base::Json(word).dump();
    return true;
  } catch (const base::Json::type_error&) {
    return false;
  }
}

bool same_but_for_case(std::string_view a, std::string_view b) {
  const auto lower = [](unsigned char c) { return std::tolower(c); };
  return std::ranges::equal(a, b, {}, lower, lower);
}

}  // namespace

std::optional<std::size_t> find_word(std::span<const std::string_view> words,
                                     std::string_view word) {
  const auto exact = std::ranges::find(words, word);
  if (exact != words.end()) return static_cast<std::size_t>(exact - words.begin());
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!same_but_for_case(words[i], word)) continue;
    if (found) return std::nullopt;
    found = i;
  }
  return found;
}

// Texts are file names and words. Control characters are refused, so that texts print and dump
// unchanged.
std::optional<std::string> WordCodec<std::string>::parse(const std::string& word) {
  const bool control =
      std::any_of(word.begin(), word.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
  if (control || word.size() > kLongestText || !is_utf8(word)) return std::nullopt;
  return word;
}

}  // namespace weft::config
