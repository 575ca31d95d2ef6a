// Quotes wrong text in error messages: the input may be long or not text, the message is neither.
#pragma once

#include <string>
#include <string_view>

namespace weft::schedule {

// Start of `text`, with '?' for control characters.
std::string quote(std::string_view text);

}  // namespace weft::schedule
