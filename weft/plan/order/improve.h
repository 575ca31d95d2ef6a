// weft schedule --improve: search for a better order of a step. Tries rules of a list scheduler
// (list_schedule.h), first by preference, then with small changes to the best; simulates each
// result like any order. The result does not depend on the clock.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "weft/exec/sim/contention.h"
#include "weft/exec/sim/costs.h"
#include "weft/schedule/plan.h"

namespace weft::plan {

struct ImproveRequest {
  const std::vector<schedule::RankPlan>& plans;  // initial order, verified
  const exec::sim::CostTable& costs;             // by pipeline rank
  exec::sim::Overheads overheads = {};
  exec::sim::Contention contention = {};
  schedule::Load load = {};  // load of a micro-batch in a MoE layer
  // Limit of kept activations on the pipeline rank that keeps most. nullopt: the given order's peak
  // there plus one micro-batch.
  std::optional<std::int64_t> memory_limit = std::nullopt;
  int tries = 400;
  std::function<bool(int tried)> goes_on = {};  // called after each try; false ends the search
};

struct Improvement {
  std::vector<schedule::RankPlan> plans;  // the given plans if nothing better was found
  double given_seconds = 0;
  double found_seconds = 0;
  double bound_seconds = 0;  // lower bound over all orders: see order_bound.h and exec/sim/bounds.h
  std::int64_t given_bytes = 0, found_bytes = 0, limit_bytes = 0;
  int tried = 0;
  int over_limit = 0;  // shorter orders that exceed the memory limit

  bool is_better() const { return found_seconds < given_seconds; }
  // Removed share of the given order's excess over the bound.
  double share_gone() const;
};

Improvement improve(const ImproveRequest& request);

}  // namespace weft::plan
