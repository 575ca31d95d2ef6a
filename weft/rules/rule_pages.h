// Rules and advice as text for readers.
#pragma once

#include <string>
#include <string_view>

#include "weft/base/json.h"

namespace weft::rules {

// docs/rules.md.
std::string markdown_rules();

// Explanation as JSON: id, kind, when, then, why, example, and measured for advice. For a
// tensor-parallel preset: its slots.
base::Json explain_json(std::string_view id);

// Explanation of a rule, a piece of advice or a tensor-parallel preset. Throws ConfigError for an
// unknown id.
std::string explain(std::string_view id);

}  // namespace weft::rules
