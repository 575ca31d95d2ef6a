// A timeline as one text, to travel between ranks.
#pragma once

#include <string>
#include <string_view>

#include "weft/trace/span.h"

namespace weft::trace {

std::string to_text(const Timeline& timeline);
// The other way; InternalError for what to_text did not write.
Timeline parse_timeline(std::string_view text);

}  // namespace weft::trace
