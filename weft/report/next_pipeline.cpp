// Ideas against the pipeline bubble.
#include <algorithm>

#include "weft/base/text.h"
#include "weft/plan/price/pipeline_comparison.h"
#include "weft/report/next.h"

namespace weft::report {
namespace {

using base::text;

std::string bubble_text(const NextFacts& facts) {
  return text("stages wait for each other {:.4g} of {:.4g} ms",
              facts.report.walls.bubble,
              facts.report.step_ms());
}

// Words for the order, without settings that the rules derived for the current one.
std::vector<std::string> words_for(const plan::PipelineOrder& order, const config::Config& run) {
  std::vector<std::string> words{
      text("runtime.pipeline_schedule={}", config::word(order.schedule)),
      text("model.virtual_pipeline_model_parallel_size={}", order.chunks)};
  if (run.comm_overlap.overlap_p2p_comm) words.push_back("comm_overlap.overlap_p2p_comm=null");
  if (run.comm_overlap.batch_p2p_comm) words.push_back("comm_overlap.batch_p2p_comm=null");
  if (run.model.microbatch_group_size_per_vp_stage) {
    words.push_back("model.microbatch_group_size_per_vp_stage=null");
  }
  return words;
}

// Suggests the best pipeline order over the current one, both at the rates that fit the run.
void add_order(const NextFacts& facts, std::vector<Idea>& ideas) {
  if (!facts.rates || !facts.run->runtime.schedule.empty()) return;
  const std::vector<plan::PipelineOrder> orders = plan::compare_pipelines(*facts.run, *facts.rates);
  const auto asked = std::ranges::find(orders, true, &plan::PipelineOrder::is_asked_for);
  const plan::PipelineOrder* best = nullptr;
  for (const plan::PipelineOrder& order : orders) {
    if (order.is_asked_for || !order.refusal.empty()) continue;
    if (best == nullptr || order.step_seconds < best->step_seconds) best = &order;
  }
  if (asked == orders.end() || best == nullptr || asked->step_seconds <= 0) return;
  const double gain = 1 - best->step_seconds / asked->step_seconds;
  const trace::Walls& walls = facts.report.walls;
  ideas.push_back(
      {.phase = Phase::Scale,
       .words = words_for(*best, *facts.run),
       .at_most_ms = std::min(gain * facts.report.step_ms(), walls.bubble + walls.idle),
       .ask = Idea::Ask::Known,
       .because = text("{}; simulated, a rank idles {:.1f} % instead of {:.1f} % and keeps {} "
                       "instead of {}",
                       bubble_text(facts),
                       100 * best->idle,
                       100 * asked->idle,
                       base::human_bytes(static_cast<double>(best->activation_bytes)),
                       base::human_bytes(static_cast<double>(asked->activation_bytes))),
       .rule = "a pipeline needs chunks or split weight gradients, or it idles (A16)"});
}

}  // namespace

std::vector<Idea> pipeline_ideas(const NextFacts& facts) {
  std::vector<Idea> ideas;
  const double bubble = facts.report.walls.bubble;
  if (facts.run == nullptr || facts.run->model.pipeline_model_parallel_size == 1) return ideas;
  if (!facts.report.crowded.empty()) return ideas;  // stages wait for cores, not for each other
  add_order(facts, ideas);
  ideas.push_back(
      {.phase = Phase::Scale,
       .words = {text("train.global_batch_size={}", 2 * facts.run->train.global_batch_size)},
       .at_most_ms = bubble / 2,
       .because = bubble_text(facts),
       .rule = "the bubble is there once a step: over twice the micro-batches it is "
               "half as much for the same tokens; it changes what is learned (A16)"});
  return ideas;
}

}  // namespace weft::report
