// The table of keys as people read it: on a terminal, and as docs/config.md.
#pragma once

#include <string>

namespace weft::config {

std::string text_reference();
std::string markdown_reference();

}  // namespace weft::config
