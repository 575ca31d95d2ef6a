// A plan as people and programs read it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "weft/base/json.h"
#include "weft/plan/measured_runs.h"
#include "weft/plan/own_layout.h"
#include "weft/plan/sensitivity.h"
#include "weft/plan/ways_to_fit.h"

namespace weft::plan {

// A command that goes on with a plan.
struct NextCommand {
  std::string command, what;
};

struct PlanReport {
  std::string model;        // as it was asked for
  std::string length = {};  // why sequences are as long as they are; empty: it was said
  std::size_t top = 10;
  SearchResult search;
  // Of the best layout, where there is one.
  std::vector<KnobStep> steps = {};
  std::vector<PlanVerdict> verdicts = {};
  std::vector<FitWay> ways = {};      // where there is none
  std::optional<OwnLayout> own = {};  // of a recipe that has one
  // What measurements say of a run; empty: there are none at hand.
  std::function<Trust(const config::Config& config)> trust_of = {};
  std::vector<NextCommand> next = {};

  Trust trust(const config::Config& config) const { return trust_of ? trust_of(config) : Trust{}; }
};

base::Json to_json(const PlanReport& report, const LayoutSpace& space);
std::string to_text(const PlanReport& report, const LayoutSpace& space);

// One layout in detail: its keys, its price, what one step in each knob would change.
base::Json explain_json(const PlanReport& report,
                        const LayoutSpace& space,
                        const PricedLayout& layout);
std::string explain_text(const PlanReport& report,
                         const LayoutSpace& space,
                         const PricedLayout& layout);

// "bf16", or all that were searched: "bf16, fp8".
std::string numbers_text(const LayoutSpace& space);

// A recipe that `weft check` and `weft train` read: every key that is not at its default.
std::string recipe_yaml(const config::Config& config, const std::string& summary);

}  // namespace weft::plan
