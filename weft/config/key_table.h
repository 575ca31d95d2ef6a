// The table of keys as people read it: on a terminal, and as docs/config.md.
#pragma once

#include <string>
#include <string_view>

namespace weft::config {

// The keys in whose name `part` is.
std::string text_reference(std::string_view part = {});
std::string markdown_reference();

}  // namespace weft::config
