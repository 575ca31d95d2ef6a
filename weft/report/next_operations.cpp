// Ideas against communication in a foreign trace that names only the operation. The parallel axis
// is unknown, so each idea names the most frequent axis and the alternatives.
#include <array>

#include "weft/base/text.h"
#include "weft/report/next.h"

namespace weft::report {
namespace {

enum class Needs { Nothing, Experts, NoExperts };

struct OperationIdea {
  const char* operation;  // name as in trace/kernel_name.h
  const char* change;
  const char* meaning;
  Needs needs = Needs::Nothing;  // requirement on the trace
};

bool has_need(Needs needs, const Report& report) {
  switch (needs) {
    case Needs::Nothing:
      return true;
    case Needs::Experts:
      return report.experts.has_value();
    case Needs::NoExperts:
      return !report.experts;
  }
  return true;
}

constexpr std::array kOperationIdeas{
    OperationIdea{"all_to_all",
                  "comm_overlap.overlap_moe_expert_parallel_comm=true",
                  "an all-to-all is most often the dispatch and combine of experts, which can run "
                  "under the compute of another micro-batch (A2, A3)",
                  Needs::Experts},
    OperationIdea{"send_recv",
                  "comm_overlap.overlap_p2p_comm=true",
                  "sends and receives are most often between the stages of a pipeline, which can "
                  "exchange under compute",
                  Needs::NoExperts},
    OperationIdea{"send_recv",
                  "comm_overlap.overlap_moe_expert_parallel_comm=true",
                  "NCCL moves the all-to-all of experts by sends and receives, and those can run "
                  "under the compute of another micro-batch (A2, A3); where they are a pipeline's, "
                  "the change is comm_overlap.overlap_p2p_comm=true",
                  Needs::Experts},
    OperationIdea{"all_gather",
                  "comm_overlap.overlap_param_gather=true",
                  "an all-gather is most often of sharded parameters, which can be gathered bucket "
                  "by bucket while the forward goes on; where it is tensor-parallel, the change is "
                  "comm_overlap.tp_comm_overlap=true"},
    OperationIdea{"reduce_scatter",
                  "comm_overlap.overlap_grad_reduce=true",
                  "a reduce-scatter is most often of gradients, which can be reduced bucket by "
                  "bucket while the backward goes on; where it is tensor-parallel, the change is "
                  "comm_overlap.tp_comm_overlap=true"},
    OperationIdea{"all_reduce",
                  "comm_overlap.overlap_grad_reduce=true",
                  "an all-reduce is most often of gradients, which can be reduced bucket by bucket "
                  "while the backward goes on"}};

}  // namespace

std::vector<Idea> operation_ideas(const NextFacts& facts) {
  std::vector<Idea> ideas;
  if (facts.run != nullptr) return ideas;
  for (const OperationIdea& one : kOperationIdeas) {
    const auto found = facts.report.exposure.kinds.find(one.operation);
    if (found == facts.report.exposure.kinds.end()) continue;
    if (!has_need(one.needs, facts.report) || is_hidden_already(facts, one.operation)) continue;
    const trace::Reasons& reasons = found->second.reasons;
    const double ms = reasons.no_partner_ms + reasons.short_cover_ms;
    ideas.push_back({.phase = Phase::Retune,
                     .words = {one.change},
                     .at_most_ms = ms,
                     .because = base::text("{} is exposed for {:.4g} of {:.4g} ms, waiting for "
                                           "other ranks included",
                                           one.operation,
                                           ms,
                                           facts.report.step_ms()),
                     .rule = one.meaning});
  }
  return ideas;
}

}  // namespace weft::report
