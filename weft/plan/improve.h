// weft schedule --improve: the order of a step is found, not only chosen. Rules of a list scheduler
// (list_schedule.h) are tried, first by what they prefer and then with small changes to the best,
// and what comes out is simulated as any other order is. The result never depends on the clock.
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
  const std::vector<schedule::RankPlan>& plans;  // of the order to begin with, verified
  const exec::sim::CostTable& costs;             // by pipeline rank
  exec::sim::Overheads overheads = {};
  exec::sim::Contention contention = {};
  schedule::Load load = {};  // of a micro-batch in an MoE layer
  // Of kept activations, on the pipeline rank that keeps most; none: what the given order keeps
  // there and one micro-batch more.
  std::optional<std::int64_t> memory_limit = std::nullopt;
  int tries = 400;
  std::function<bool(int tried)> goes_on = {};  // told after each try; false ends the search
};

struct Improvement {
  std::vector<schedule::RankPlan> plans;  // those given where nothing better was found
  double given_seconds = 0;
  double found_seconds = 0;
  double bound_seconds = 0;  // no order is shorter: see order_bound.h and exec/sim/bounds.h
  std::int64_t given_bytes = 0, found_bytes = 0, limit_bytes = 0;
  int tried = 0;
  int over_limit = 0;  // of them, orders that were shorter and kept too much

  bool is_better() const { return found_seconds < given_seconds; }
  // Of what the given order leaves above the bound.
  double share_gone() const;
};

Improvement improve(const ImproveRequest& request);

}  // namespace weft::plan
