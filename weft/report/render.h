// Renderings of a report for people and programs.
#pragma once

#include <string>

#include "weft/base/json.h"
#include "weft/report/evidence.h"
#include "weft/report/report.h"

namespace weft::report {

std::string to_text(const Report& report);
base::Json to_json(const Report& report);

// Self-contained HTML page: timeline, charts, tables.
std::string to_page(const Report& report, const Evidence& evidence);

}  // namespace weft::report
