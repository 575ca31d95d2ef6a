// Ideas against the communication wall and against late ranks.
#include <algorithm>

#include "weft/base/text.h"
#include "weft/derive/dispatch_traffic.h"
#include "weft/report/next.h"

namespace weft::report {
namespace {

using base::text;

// Exposed transfer time, without waits for peers and the host.
double moving_ms(const NextFacts& facts, const std::string& kind) {
  const auto found = facts.report.exposure.kinds.find(kind);
  if (found == facts.report.exposure.kinds.end()) return 0;
  const trace::Reasons& reasons = found->second.reasons;
  return reasons.no_partner_ms + reasons.short_cover_ms;
}

double short_cover_ms(const NextFacts& facts, const std::string& kind) {
  const auto found = facts.report.exposure.kinds.find(kind);
  return found == facts.report.exposure.kinds.end() ? 0 : found->second.reasons.short_cover_ms;
}

std::string exposed_text(const NextFacts& facts, const std::string& kind, double ms) {
  return text("{} communication is exposed for {:.4g} of {:.4g} ms while it moves",
              kind,
              ms,
              facts.report.step_ms());
}

Idea cover(const NextFacts& facts,
           const std::string& kind,
           std::vector<std::string> words,
           std::string rule) {
  const double ms = moving_ms(facts, kind);
  return {.phase = Phase::Retune,
          .words = std::move(words),
          .at_most_ms = ms,
          .ask = Idea::Ask::Simulator,
          .because = exposed_text(facts, kind, ms),
          .rule = std::move(rule)};
}

bool overlaps_experts(const NextFacts& facts) {
  return facts.run != nullptr && facts.run->comm_overlap.overlap_moe_expert_parallel_comm;
}

void add_expert_ideas(const NextFacts& facts, std::vector<Idea>& ideas) {
  if (overlaps_experts(facts)) {
    if (facts.run->comm_overlap.delay_wgrad_compute) return;
    Idea idea = cover(facts,
                      "ep",
                      {"comm_overlap.delay_wgrad_compute=true"},
                      "where overlap runs short of compute, weight gradients that wait are more "
                      "cover; try them apart from the overlap itself (A4)");
    idea.at_most_ms = short_cover_ms(facts, "ep");
    idea.because +=
        text(", {:.4g} ms of it because the compute beside it was over", idea.at_most_ms);
    ideas.push_back(std::move(idea));
    return;
  }
  if (is_hidden_already(facts, "ep")) return;
  ideas.push_back(cover(facts,
                        "ep",
                        {"comm_overlap.overlap_moe_expert_parallel_comm=true"},
                        "where dispatch and combine are visible and memory has room, run them "
                        "under the compute of another micro-batch (A2, A3)"));
}

// Bytes of one layer's dispatch and combine that leave a rank.
double wire_bytes(const config::Config& run) {
  const config::ModelConfig& model = run.model;
  const std::int64_t ranks = model.expert_grid().ranks;
  const std::int64_t near = run.runtime.ranks_per_node.value_or(ranks);
  const std::int64_t tokens = run.train.micro_batch_size * model.seq_length /
                              (model.tensor_model_parallel_size * model.context_parallel_size);
  const derive::DispatchTraffic sent =
      derive::expected_traffic(model,
                               {.ranks = ranks,
                                .ranks_per_node = ranks % near == 0 ? std::min(near, ranks) : ranks,
                                .tokens = tokens});
  return sent.inside.bytes() + sent.between.bytes();
}

// Suggests a dispatcher that sends a token once per rank of its machine, and once per other
// machine.
void add_dispatcher_idea(const NextFacts& facts, std::vector<Idea>& ideas) {
  if (facts.run == nullptr || facts.run->model.experts() == 0) return;
  if (facts.run->model.moe_token_dispatcher_type != config::Dispatcher::AllToAll) return;
  config::Config changed = *facts.run;
  changed.model.moe_token_dispatcher_type = config::Dispatcher::Flex;
  changed.model.moe_flex_dispatcher_backend = config::FlexBackend::DeepEp;
  const double now = wire_bytes(*facts.run), then = wire_bytes(changed);
  if (then >= now) return;
  Idea idea =
      cover(facts,
            "ep",
            {"model.moe_token_dispatcher_type=flex", "model.moe_flex_dispatcher_backend=deepep"},
            "alltoall sends a token once for each of its experts, deepep once for each rank of "
            "its machine and once for each other machine; compare dispatchers where both are "
            "installed (A9)");
  idea.ask = Idea::Ask::Nobody;
  idea.at_most_ms *= 1 - then / now;
  idea.because += text("; it would move {:.0f} % fewer bytes", 100 * (1 - then / now));
  ideas.push_back(std::move(idea));
}

void add_balance_idea(const NextFacts& facts, std::vector<Idea>& ideas) {
  const double late = facts.report.walls.late;
  const auto& loads = facts.report.loads;
  const auto worst = std::ranges::max_element(loads, {}, &LayerLoad::max);
  if (worst == loads.end() || worst->max <= 1) return;
  const bool is_balanced =
      facts.run != nullptr &&
      std::ranges::any_of(facts.run->model.moe_aux_loss_coeff, [](double c) { return c > 0; });
  ideas.push_back(
      {.phase = Phase::Retune,
       .words = {is_balanced ? "model.moe_router_enable_expert_bias=true"
                             : "model.moe_aux_loss_coeff=[0.01]"},
       .at_most_ms = late,
       .because = text("ranks wait {:.4g} ms for others that come late, and the busiest expert of "
                       "layer {} has {:.2f} times the mean load",
                       late,
                       worst->layer,
                       worst->max),
       .rule =
           "experts that are alike busy let ranks arrive together; it changes what is learned"});
}

}  // namespace

bool is_hidden_already(const NextFacts& facts, const std::string& kind) {
  constexpr double kMostlyHidden = 0.75;
  const auto found = facts.report.exposure.kinds.find(kind);
  return facts.run == nullptr && found != facts.report.exposure.kinds.end() &&
         found->second.hidden_any > kMostlyHidden;
}

std::vector<Idea> communication_ideas(const NextFacts& facts) {
  std::vector<Idea> ideas;
  add_expert_ideas(facts, ideas);
  add_dispatcher_idea(facts, ideas);
  add_balance_idea(facts, ideas);
  const auto add_cover = [&](const std::string& kind, const char* change, const char* rule) {
    if (!is_hidden_already(facts, kind)) ideas.push_back(cover(facts, kind, {change}, rule));
  };
  add_cover("dp",
            "comm_overlap.overlap_grad_reduce=true",
            "reduce gradients bucket by bucket while the backward goes on");
  add_cover("dp",
            "comm_overlap.overlap_param_gather=true",
            "gather parameters bucket by bucket while the forward goes on");
  add_cover("tp",
            "comm_overlap.tp_comm_overlap=true",
            "run tensor-parallel collectives under the products beside them");
  add_cover("pp",
            "comm_overlap.overlap_p2p_comm=true",
            "send and receive between stages under compute");
  return ideas;
}

}  // namespace weft::report
