#include "weft/cli/startup.h"

#include "weft/cli/output.h"
#include "weft/rules/overlap_modes.h"

namespace weft::cli {

std::vector<std::string> startup_lines(const rules::Verdict& verdict) {
  std::vector<std::string> lines;
  for (const config::Finding& warning : verdict.warnings) {
    lines.push_back("warning: " + config::to_text(warning));
  }
  for (const config::Finding& set : verdict.automatic) {
    lines.push_back(set_line(set));
  }
  for (const rules::OverlapMode& mode : rules::overlap_modes(verdict)) {
    lines.push_back("overlap: " + rules::to_line(mode));
  }
  return lines;
}

}  // namespace weft::cli
