// Timeline as text, for sending between ranks.
#pragma once

#include <string>
#include <string_view>

#include "weft/trace/span.h"

namespace weft::trace {

std::string to_text(const Timeline& timeline);
// Inverse of to_text; throws InternalError for other text.
Timeline parse_timeline(std::string_view text);

}  // namespace weft::trace
