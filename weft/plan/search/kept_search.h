// Search result as text, so that a later command need not repeat the search.
#pragma once

#include <optional>
#include <string>

#include "weft/base/json.h"
#include "weft/plan/search/plan_verdicts.h"
#include "weft/plan/search/search_report.h"

namespace weft::plan {

// Expensive parts of a report: the search, and the questions about its best layout. The rest is
// recomputed.
struct KeptSearch {
  std::size_t top = 0;  // layouts searched for: the answer holds for as many or fewer
  SearchResult search = {};
  std::vector<KnobStep> steps = {};
  std::vector<PlanVerdict> verdicts = {};
  std::vector<FitWay> ways = {};
};

// Every input of the answer except the program itself and the number of layouts. `others`: hardware
// to try if the model fits nowhere.
std::string question_text(const PlanAsk& ask, const std::vector<Hardware>& others);

base::Json to_json(const KeptSearch& kept);
// nullopt: not a kept search, or one with a value outside of its range.
std::optional<KeptSearch> kept_search(const base::Json& json);

// True if every layout of it is one of the space.
bool is_part_of(const LayoutSpace& space, const KeptSearch& kept);

}  // namespace weft::plan
