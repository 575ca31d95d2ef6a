// Reference of all keys: for a terminal, and as docs/config.md.
#pragma once

#include <string>
#include <string_view>

namespace weft::config {

// Keys with `part` in their name.
std::string text_reference(std::string_view part = {});
std::string markdown_reference();

}  // namespace weft::config
