#include "weft/cli/output.h"

#include <iostream>

#include "weft/base/text.h"

namespace weft::cli {

void print_text(std::string_view text) { std::cout << text; }

// File names need not be UTF-8; JSON must be.
void print_json(const base::Json& json) {
  std::cout << json.dump(-1, ' ', false, base::Json::error_handler_t::replace) << '\n';
}

void print_error(const std::string& what) {
  // One write, so that the lines of several ranks do not mix.
  std::cerr << base::text("error: {}\n", what);
}

void print_warning(const std::string& what) {
  // One write, so that the lines of several ranks do not mix.
  std::cerr << base::text("warning: {}\n", what);
}

void print_findings(const words::Resolution& resolution) {
  for (const config::Finding& warning : resolution.warnings) {
    print_warning(config::to_text(warning));
  }
  for (const config::Finding& set : resolution.automatic) std::cerr << set_line(set) + "\n";
}

std::string set_line(const config::Finding& set) {
  return base::text("set: {} = {} ({}: {})", set.key, set.to.dump(), set.id, set.message);
}

void print_findings(const rules::Verdict& verdict) {
  for (const config::Finding& warning : verdict.warnings) print_warning(config::to_text(warning));
  for (const rules::Missing& part : verdict.missing) print_warning(part.message);
}

}  // namespace weft::cli
