// Results on standard output.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/json.h"
#include "weft/rules/validate.h"
#include "weft/words/resolution.h"

namespace weft::cli {

enum class Format { Text, Json };

void print_text(std::string_view text);
void print_json(const base::Json& json);
// "error: ..." on standard error.
void print_error(const std::string& what);
// What ends a command: an "error: ..." line each on standard error (the first hundred), and where
// the user asked for JSON one object on standard output, from rank 0 alone: "error", the first or
// only one, and "errors", all of them.
void print_failure(const std::vector<std::string>& complaints, Format format);
// The same for an error on a rank (train::Report).
std::function<void(const std::string& error)> failure_printer(Format format);
// "warning: ..." on standard error.
void print_warning(const std::string& what);

// What the words did beyond what they say: warnings, and what a flag set besides its own key.
void print_findings(const words::Resolution& resolution);
// "set: a.b = c (rule: why)"
std::string set_line(const config::Finding& set);
// Warnings, and the parts that are missing where the command goes on without them.
void print_findings(const rules::Verdict& verdict);

}  // namespace weft::cli
