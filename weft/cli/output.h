// Results on standard output.
#pragma once

#include <string_view>

#include "weft/base/json.h"
#include "weft/rules/validate.h"
#include "weft/words/resolution.h"

namespace weft::cli {

void print_text(std::string_view text);
void print_json(const base::Json& json);
// "error: ..." on standard error.
void print_error(const std::string& what);
// "warning: ..." on standard error.
void print_warning(const std::string& what);

// What the words did beyond what they say: warnings, and what a flag set besides its own key.
void print_findings(const words::Resolution& resolution);
// "set: a.b = c (rule: why)"
std::string set_line(const config::Finding& set);
// Warnings, and the parts that are missing where the command goes on without them.
void print_findings(const rules::Verdict& verdict);

}  // namespace weft::cli
