#include "weft/config/blend_list.h"

#include "weft/base/text.h"

namespace weft::config {
namespace {

// Text between outer brackets; nullopt: no brackets.
std::optional<std::string_view> inside_brackets(std::string_view written) {
  const std::string_view text = base::trim(written);
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') return std::nullopt;
  return base::trim(text.substr(1, text.size() - 2));
}

}  // namespace

std::string_view unquoted(std::string_view word) {
  const bool quoted = word.size() >= 2 && word.front() == word.back() &&
                      (word.front() == '"' || word.front() == '\'');
  return quoted ? word.substr(1, word.size() - 2) : word;
}

std::optional<std::vector<std::string>> blend_words(std::string_view written) {
  if (base::trim(written) == "null") return std::vector<std::string>();
  const std::optional<std::string_view> inside = inside_brackets(written);
  if (!inside || inside->find_first_of("[]") != inside->npos) return std::nullopt;
  std::vector<std::string> words;
  if (inside->empty()) return words;
  for (const std::string& word : base::split(*inside, ',')) {
    words.emplace_back(unquoted(base::trim(word)));
  }
  return words;
}

std::string blend_text(const std::vector<std::string>& words) {
  return base::text("[{}]", fmt::join(words, ","));
}

std::optional<std::vector<std::string>> lists_in(std::string_view written) {
  const std::optional<std::string_view> inside = inside_brackets(written);
  if (!inside || inside->find('[') == inside->npos) return std::nullopt;
  std::vector<std::string> lists;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= inside->size(); ++i) {
    const char c = i < inside->size() ? (*inside)[i] : ',';
    depth += c == '[' ? 1 : c == ']' ? -1 : 0;
    if (c != ',' || depth != 0) continue;
    lists.emplace_back(base::trim(inside->substr(begin, i - begin)));
    if (!blend_words(lists.back())) return std::nullopt;
    begin = i + 1;
  }
  return depth == 0 ? std::optional(std::move(lists)) : std::nullopt;
}

}  // namespace weft::config
