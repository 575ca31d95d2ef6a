// Configs and plans the schedule tests share.
#pragma once

#include <string>
#include <vector>

#include "weft/config/config.h"
#include "weft/schedule/plan.h"

namespace weft::schedule {

struct PlanCase {
  std::string layers = "mmmm";  // 'd' dense, 'm' MoE
  int ep = 2;
  int dp = 2;  // a multiple of ep
  int tp = 1;
  int pp = 1, vpp = 1;
  int micro_batches = 4;
  int group = 0;  // 0: pp
  std::string layout = "";
  bool tied = false;
  bool overlap = false, delay = false, early = false, experts_wgrad = false;
  bool overlap_p2p = false;
  int slices = 1;
  bool shared = false, shared_overlap = false;
  bool global_loss = false;
  Detail detail = {};
};

std::string name(const PlanCase& c);
config::Config config_of(const PlanCase& c);
std::vector<RankPlan> plans_of(const PlanCase& c);

// Every knob and shape worth a look, all of them legal.
std::vector<PlanCase> many_cases();

}  // namespace weft::schedule
