// comm_overlap.overlap_moe_expert_parallel_comm = auto, before anything runs: the orders that a run
// would try in its first steps, each at its price.
#pragma once

#include <string>
#include <vector>

#include "weft/base/json.h"
#include "weft/config/config.h"
#include "weft/plan/hardware.h"
#include "weft/plan/routing.h"

namespace weft::plan {

struct AutoOrder {
  std::string name;       // as the run says it: "overlap + delayed wgrad"
  config::Config config;  // as asked for, with this order instead of auto
  double step_ms = 0;
  std::string refusal;  // why the rules do not let it run; else empty
};

// None where the order is not left to the run. The plain order comes first, then the others.
std::vector<AutoOrder> auto_orders(const config::Config& asked,
                                   const Hardware& hardware,
                                   const Routing& routing);

// Of those that may run the fastest, and of equals the first: overlap that gains nothing costs
// memory. Where none may run, the plain one, whose refusal the caller gets from the rules.
const AutoOrder& fastest(const std::vector<AutoOrder>& orders);

base::Json to_json(const std::vector<AutoOrder>& orders);
std::string to_text(const std::vector<AutoOrder>& orders);

}  // namespace weft::plan
