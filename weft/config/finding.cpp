#include "weft/config/finding.h"

#include "weft/base/text.h"

namespace weft::config {

std::string to_text(const Finding& finding) {
  const std::string fix = finding.fix.empty() ? "" : ": " + finding.fix;
  return base::text("{}: {}{}", finding.id, finding.message, fix);
}

}  // namespace weft::config
