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
  bool tp_overlap = false;
  int cp = 1;
  config::CpComm cp_comm = config::CpComm::P2p;
  bool cp_overlap = true;
  int pp = 1, vpp = 1;
  int micro_batches = 4;
  int group = 0;  // 0: pp
  std::string layout = "";
  bool tied = false;
  bool overlap = false, delay = false, early = false, experts_wgrad = false;
  bool overlap_p2p = false;
  int slices = 1;
  bool shared = false, shared_overlap = false;
  bool narrow = false;  // experts that attention outweighs
  bool global_loss = false;
  config::PipelineSchedule schedule = config::PipelineSchedule::Auto;
  bool defer_head = false;
  int defer_limit = 0;
  bool flush = false;
  // Between data-parallel ranks.
  bool distributed = false, overlap_reduce = false, overlap_gather = false;
  bool gather_under_optimizer = false, align_gather = false;
  int bucket_size = 0;  // 0: the rules'
  Detail detail = {};
};

std::string name(const PlanCase& c);
config::Config config_of(const PlanCase& c);
std::vector<RankPlan> plans_of(const PlanCase& c);

// Every knob and shape worth a look, all of them legal.
std::vector<PlanCase> many_cases();
// The plans of all of them, made once for all tests.
struct PlannedCase {
  PlanCase c;
  std::vector<RankPlan> plans;
};
const std::vector<PlannedCase>& many_plans();
// Those of them whose weight gradients are put off: zero bubble, DualPipeV, the head's.
std::vector<PlanCase> ordered_cases();

}  // namespace weft::schedule
