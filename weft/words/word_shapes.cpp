#include "weft/words/word_shapes.h"

#include <algorithm>
#include <cctype>

#include "weft/base/text.h"
#include "weft/config/field.h"
#include "weft/config/other_names.h"

namespace weft::words {

using namespace config;

bool is_setting(std::string_view word) {
  const std::size_t start = word.find_first_not_of("+~");
  if (start == std::string_view::npos) return false;
  const std::string_view rest = word.substr(start);
  const std::string_view key = rest.substr(0, rest.find('='));
  const bool sets = key.size() < rest.size() || word.front() == '~';
  return sets && find_field(meant_key(key)) != nullptr;
}

bool is_override(std::string_view word) {
  const std::size_t start = word.find_first_not_of("+~");
  if (start == std::string_view::npos) return false;
  const std::size_t equals = word.find('=');
  const std::string_view key = word.substr(start, equals - start);
  const bool sets = equals != std::string_view::npos || word.front() == '~';
  const bool plain = std::ranges::all_of(key, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '.';
  });
  return sets && plain && key.find('.') != std::string_view::npos;
}

bool is_plain_value(std::string_view word) {
  for (const char* said : {"yes", "no", "on", "off", "none", "None", "null"}) {
    if (word == said) return true;
  }
  return base::parse_number(word).has_value() || WordCodec<bool>::parse(std::string(word)) ||
         word.starts_with('[') || word.starts_with('(');
}

}  // namespace weft::words
