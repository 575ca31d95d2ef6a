// Results on standard output, messages on standard error.
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
// Prints "error: ..." on standard error.
void print_error(const std::string& what);
// Prints the errors that end a command: one "error: ..." line each on standard error (the first
// hundred). For JSON rank 0 also prints an object on standard output: "error" (the first) and
// "errors" (all).
void print_failure(const std::vector<std::string>& complaints, Format format);
// Variant for an error on a rank (train::Report).
std::function<void(const std::string& error)> failure_printer(Format format);
// Prints "warning: ..." on standard error.
void print_warning(const std::string& what);

// Prints side effects of the words: warnings, and other keys that a flag set.
void print_findings(const words::Resolution& resolution);
// "set: a.b = c (rule: why)"
std::string set_line(const config::Finding& set);
// Prints warnings, and missing parts if the command continues without them.
void print_findings(const rules::Verdict& verdict);

}  // namespace weft::cli
