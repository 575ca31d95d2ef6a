#include "weft/schedule/quote.h"

#include <algorithm>

namespace weft::schedule {

std::string quote(std::string_view text) {
  constexpr std::size_t kLimit = 100;
  std::string quoted(text.substr(0, kLimit));
  std::ranges::replace_if(
      quoted,
      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; },
      '?');
  return quoted;
}

}  // namespace weft::schedule
