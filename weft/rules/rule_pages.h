// The rules and the advice as people read them.
#pragma once

#include <string>
#include <string_view>

#include "weft/base/json.h"

namespace weft::rules {

// docs/rules.md.
std::string markdown_rules();

// The story as JSON: id, kind, when, then, why, example, and measured for advice; of a
// tensor-parallel preset its slots.
base::Json explain_json(std::string_view id);

// The story of one rule or piece of advice, or what a tensor-parallel preset holds; ConfigError for
// an id that is none.
std::string explain(std::string_view id);

}  // namespace weft::rules
