// A plan as people and programs read it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "weft/base/json.h"
#include "weft/plan/sensitivity.h"
#include "weft/plan/ways_to_fit.h"

namespace weft::plan {

struct PlanReport {
  std::string model;  // as it was asked for
  std::size_t top = 10;
  SearchResult search;
  // Of the best layout, where there is one.
  std::vector<KnobStep> steps = {};
  std::vector<PlanVerdict> verdicts = {};
  std::vector<FitWay> ways = {};  // where there is none
};

base::Json to_json(const PlanReport& report, const LayoutSpace& space);
std::string to_text(const PlanReport& report, const LayoutSpace& space);

// One layout in detail: its keys, its price, what one step in each knob would change.
base::Json explain_json(const LayoutSpace& space, const PricedLayout& layout);
std::string explain_text(const LayoutSpace& space, const PricedLayout& layout);

// A recipe that `weft check` and `weft train` read: every key that is not at its default.
std::string recipe_yaml(const config::Config& config, const std::string& summary);

}  // namespace weft::plan
