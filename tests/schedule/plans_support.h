// Configs and plans shared by the schedule tests.
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
  bool narrow = false;  // attention outweighs the experts
  bool global_loss = false;
  config::PipelineSchedule schedule = config::PipelineSchedule::Auto;
  bool defer_head = false;
  int defer_limit = 0;
  bool flush = false;
  // Between data-parallel ranks.
  bool distributed = false, overlap_reduce = false, overlap_gather = false;
  bool gather_under_optimizer = false, align_gather = false;
  int bucket_size = 0;  // 0: size by the rules
  Detail detail = {};
};

std::string name(const PlanCase& c);
config::Config config_of(const PlanCase& c);
std::vector<RankPlan> plans_of(const PlanCase& c);

// Legal combinations of all keys and shapes of interest.
std::vector<PlanCase> many_cases();
// Every case of these at this distance, a prime, so that every knob appears; all in `make soak`.
std::vector<PlanCase> some_cases(std::size_t distance, std::size_t first = 0);
// Plans of these, made once for all tests.
struct PlannedCase {
  PlanCase c;
  std::vector<RankPlan> plans;
};
const std::vector<PlannedCase>& many_plans();
// Cases with delayed weight gradients: zero bubble, DualPipeV, the head's.
std::vector<PlanCase> ordered_cases();

}  // namespace weft::schedule
