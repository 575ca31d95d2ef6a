// The rules and the advice as people read them.
#pragma once

#include <string>
#include <string_view>

namespace weft::config {

// docs/rules.md.
std::string markdown_rules();

// The story of one rule or piece of advice; ConfigError for an id that is none.
std::string explain(std::string_view id);

}  // namespace weft::config
