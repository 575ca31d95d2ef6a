// Ideas against the host wall and the compute wall.
#include <algorithm>

#include "weft/base/text.h"
#include "weft/measure/memory/memory_forecast.h"
#include "weft/report/next.h"

namespace weft::report {
namespace {

using base::text;

std::string host_text(const NextFacts& facts) {
  return text("compute was ready and not issued for {:.4g} of {:.4g} ms",
              facts.report.walls.host,
              facts.report.step_ms());
}

// A micro-batch of twice the size halves the number of nodes for the same tokens.
void add_larger_micro_batch(const NextFacts& facts, std::vector<Idea>& ideas) {
  if (facts.run == nullptr) return;
  const config::TrainConfig& train = facts.run->train;
  ideas.push_back({.phase = Phase::Retune,
                   .words = {text("train.micro_batch_size={}", 2 * train.micro_batch_size)},
                   .at_most_ms = facts.report.walls.host / 2,
                   .because = host_text(facts),
                   .rule = "twice the micro-batch is half the nodes to issue for the same tokens; "
                           "it takes memory"});
}

// Suggests CUDA graphs for a run that is not Weft's own: Weft has none.
void add_graphs(const NextFacts& facts, std::vector<Idea>& ideas) {
  if (facts.run == nullptr && facts.report.kind.ends_with("trace of Weft")) return;
  if (facts.run != nullptr && facts.run->model.cuda_graph_impl != config::CudaGraphImpl::None) {
    return;
  }
  if (facts.run == nullptr && !facts.report.experts) {
    ideas.push_back({.phase = Phase::Retune,
                     .words = {"model.cuda_graph_impl=full_iteration"},
                     .at_most_ms = facts.report.walls.host,
                     .because = host_text(facts),
                     .rule = "CUDA graphs only after a profile shows launch gaps; shapes of a step "
                             "without experts are the same each time (A11)"});
    return;
  }
  ideas.push_back({.phase = Phase::Retune,
                   .words = {"model.cuda_graph_impl=transformer_engine",
                             "model.cuda_graph_modules=[moe_router,moe_preprocess]"},
                   .at_most_ms = facts.report.walls.host,
                   .because = host_text(facts),
                   .rule = "CUDA graphs only after a profile shows launch gaps; a dropless MoE "
                           "starts with moe_router and moe_preprocess (A11, A12)"});
}

// Time of pieces with this prefix.
double measured_ms(const Report& report, std::string_view begin) {
  double ms = 0;
  if (!report.comparison) return ms;
  for (const Comparison::Row& row : report.comparison->pieces) {
    if (row.name.starts_with(begin)) ms += row.measured_ms;
  }
  return ms;
}

// True if the run with these words fits its GPU, or the GPU is unknown.
bool would_fit(const NextFacts& facts, const config::Config& changed) {
  if (!facts.report.memory || facts.report.memory->room_bytes == 0) return true;
  MemoryWall memory{.forecast = measure::forecast_memory(changed, measure::Priced::No),
                    .gpu = {},
                    .room_bytes = facts.report.memory->room_bytes};
  return memory.forecast.is_predicted() && memory.share() < kTightMemory;
}

void add_no_recompute(const NextFacts& facts, std::vector<Idea>& ideas) {
  const double again = measured_ms(facts.report, "R.");
  if (facts.run == nullptr || again == 0) return;
  config::Config changed = *facts.run;
  changed.model.recompute_granularity = std::nullopt;
  changed.model.recompute_method = std::nullopt;
  changed.model.recompute_num_layers = std::nullopt;
  changed.model.recompute_modules = std::nullopt;
  if (!would_fit(facts, changed)) return;
  ideas.push_back(
      {.phase = Phase::Fit,
       .words = {"model.recompute_granularity=null",
                 "model.recompute_method=null",
                 "model.recompute_num_layers=null",
                 "model.recompute_modules=null"},
       .at_most_ms = again,
       .because = text("recomputation takes {:.4g} of {:.4g} ms", again, facts.report.step_ms()),
       .rule = "recompute no more than fitting needs: weft memory says what it frees "
               "(A6, A7)"});
}

void add_fusion(const NextFacts& facts, std::vector<Idea>& ideas) {
  const trace::Walls& walls = facts.report.walls;
  if (facts.run == nullptr) {
    if (!facts.report.experts) return;
    const double rows = std::min(facts.report.experts->rows_ms, walls.compute - walls.gemm);
    ideas.push_back({.phase = Phase::Retune,
                     .words = {"model.moe_permute_fusion=true", "model.moe_router_fusion=true"},
                     .at_most_ms = rows,
                     .because = text("of {:.4g} ms of compute kernels that route, sort and bring "
                                     "rows take {:.4g}",
                                     walls.compute,
                                     rows),
                     .rule = "the compute wall: fuse what only moves memory"});
    return;
  }
  const double merge = measured_ms(facts.report, "F.merge");
  ideas.push_back({.phase = Phase::Retune,
                   .words = {"model.moe_permute_fusion=true"},
                   .at_most_ms = facts.run->model.moe_permute_fusion ? 0 : merge,
                   .because = text("bringing rows back to their tokens takes {:.4g} ms", merge),
                   .rule = "the compute wall: fuse what only moves memory"});
}

}  // namespace

std::vector<Idea> compute_ideas(const NextFacts& facts) {
  std::vector<Idea> ideas;
  add_larger_micro_batch(facts, ideas);
  add_graphs(facts, ideas);
  add_no_recompute(facts, ideas);
  add_fusion(facts, ideas);
  return ideas;
}

}  // namespace weft::report
