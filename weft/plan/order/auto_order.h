// comm_overlap.overlap_moe_expert_parallel_comm = auto, before a run: prices each order that the
// run would try in its first steps.
#pragma once

#include <string>
#include <vector>

#include "weft/base/json.h"
#include "weft/config/config.h"
#include "weft/plan/hardware/hardware.h"
#include "weft/plan/hardware/routing.h"

namespace weft::plan {

struct AutoOrder {
  std::string name;       // name in the run's log: "overlap + delayed wgrad"
  config::Config config;  // config as written, with this order instead of auto
  double step_ms = 0;
  std::string refusal;  // reason why the rules refuse it; empty: legal
};

// Candidate orders, the plain one first. Empty: the config fixes the order.
std::vector<AutoOrder> auto_orders(const config::Config& asked,
                                   const Hardware& hardware,
                                   const Routing& routing);

// Fastest legal order; among equals the first, since an overlap without gain costs memory. If none
// is legal: the plain order, whose refusal the rules report.
const AutoOrder& fastest(const std::vector<AutoOrder>& orders);

base::Json to_json(const std::vector<AutoOrder>& orders);
std::string to_text(const std::vector<AutoOrder>& orders);

}  // namespace weft::plan
