// A search as text, so that a command that goes on with it need not search again.
#pragma once

#include <optional>
#include <string>

#include "weft/base/json.h"
#include "weft/plan/search_report.h"

namespace weft::plan {

// What took the time: the search and what was asked of its best layout. The rest of a report is
// cheap, and made anew.
struct KeptSearch {
  SearchResult search = {};
  std::vector<KnobStep> steps = {};
  std::vector<PlanVerdict> verdicts = {};
  std::vector<FitWay> ways = {};
};

// Everything the answer depends on but the program itself. `others`: the hardware that a model that
// fits nowhere is tried on.
std::string question_text(const PlanAsk& ask, std::size_t top, const std::vector<Hardware>& others);

base::Json to_json(const KeptSearch& kept);
// nullopt: it is none.
std::optional<KeptSearch> kept_search(const base::Json& json);

}  // namespace weft::plan
