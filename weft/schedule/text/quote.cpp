#include "weft/schedule/text/quote.h"

#include "weft/base/visible.h"

namespace weft::schedule {

std::string quote(std::string_view text) {
  constexpr std::size_t kLimit = 100;
  return base::visible(base::shortened(text, kLimit));
}

}  // namespace weft::schedule
