// Plan as text and JSON.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "weft/base/json.h"
#include "weft/plan/memory/ways_to_fit.h"
#include "weft/plan/price/sensitivity.h"
#include "weft/plan/published/measured_runs.h"
#include "weft/plan/search/own_layout.h"
#include "weft/plan/search/plan_verdicts.h"

namespace weft::plan {

// Command that continues from a plan.
struct NextCommand {
  std::string command, what;
};

struct PlanReport {
  std::string model;        // as asked for
  std::string length = {};  // reason for the sequence length; empty: the user gave it
  std::size_t top = 10;
  SearchResult search;
  // Results for the best layout, if any.
  std::vector<KnobStep> steps = {};
  std::vector<PlanVerdict> verdicts = {};
  std::vector<FitWay> ways = {};      // if nothing fits
  std::optional<OwnLayout> own = {};  // for a recipe with a layout
  // Evidence of measurements for a run; empty: none available.
  std::function<Trust(const config::Config& config)> trust_of = {};
  std::vector<NextCommand> next = {};

  Trust trust(const config::Config& config) const { return trust_of ? trust_of(config) : Trust{}; }
};

base::Json to_json(const PlanReport& report, const LayoutSpace& space);
std::string to_text(const PlanReport& report, const LayoutSpace& space);

// One layout in detail: its keys, its price and its sensitivity to each knob.
base::Json explain_json(const PlanReport& report,
                        const LayoutSpace& space,
                        const PricedLayout& layout);
std::string explain_text(const PlanReport& report,
                         const LayoutSpace& space,
                         const PricedLayout& layout);

// "bf16", or all searched formats: "bf16, fp8".
std::string numbers_text(const LayoutSpace& space);

// Recipe for `weft check` and `weft train`: every key without its default.
std::string recipe_yaml(const config::Config& config, const std::string& summary);

}  // namespace weft::plan
