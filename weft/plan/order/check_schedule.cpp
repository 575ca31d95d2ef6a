#include "weft/plan/order/check_schedule.h"

#include <algorithm>

#include "weft/base/text.h"
#include "weft/derive/derived.h"
#include "weft/derive/pipeline.h"
#include "weft/grid/grid.h"
#include "weft/plan/price/short_step.h"
#include "weft/rules/missing.h"
#include "weft/schedule/plan.h"

namespace weft::plan {
namespace {

// Number of nodes that take about a second to plan and verify.
constexpr std::int64_t kNodesWorthWaiting = 120'000;
constexpr std::int64_t kNodesOfLayer = 25;

std::int64_t micro_batches_to_plan(const config::ModelConfig& model, std::int64_t all) {
  const std::int64_t group = derive::micro_batch_group(model);
  const std::int64_t affordable = kNodesWorthWaiting / (model.num_layers * kNodesOfLayer);
  return std::max(fewest_micro_batches(model, all),
                  std::min(all, affordable / group * group + all % group));
}

}  // namespace

ScheduleCheck check_schedule(const config::Config& config) {
  const grid::Layout layout = derive::layout_of(config);
  ScheduleCheck check;
  check.micro_batches = micro_batches_of(config);
  check.planned = micro_batches_to_plan(config.model, check.micro_batches);
  const config::Config shorter = with_micro_batches(config, check.planned);
  for (const rules::Missing& limit : rules::schedule_limits(shorter)) {
    check.complaints.push_back(base::text("not planned: {}: {}", limit.message, limit.fix));
  }
  if (!check.valid()) return check;
  const std::vector<schedule::RankPlan> plans = schedule::plan_step(shorter, grid::Grid(layout));
  check.complaints = schedule::verify_plan(plans);
  for (const schedule::RankPlan& plan : plans) {
    check.ranks.push_back({.chunks = derive::virtual_stages(config.model),
                           .nodes = std::ssize(plan.training.entries)});
  }
  return check;
}

base::Json to_json(const ScheduleCheck& check) {
  base::Json ranks = base::Json::array();
  std::int64_t nodes = 0;
  for (const ScheduleCheck::Rank& rank : check.ranks) {
    nodes += rank.nodes;
    ranks.push_back({{"chunks", rank.chunks}, {"nodes", rank.nodes}});
  }
  return {{"valid", check.valid()},
          {"nodes", nodes},
          {"micro_batches", check.micro_batches},
          {"micro_batches_verified", check.planned},
          {"pipeline_ranks", std::move(ranks)},
          {"complaints", check.complaints}};
}

std::string to_text(const ScheduleCheck& check) {
  if (check.ranks.empty()) return base::text("{}\n", fmt::join(check.complaints, "\n"));
  const auto [least, most] = std::ranges::minmax(check.ranks, {}, &ScheduleCheck::Rank::nodes);
  std::string all = base::text("{}, {} each, {} to {} nodes: {}\n",
                               base::counted(std::ssize(check.ranks), "pipeline rank"),
                               base::counted(least.chunks, "chunk"),
                               least.nodes,
                               most.nodes,
                               check.valid() ? "verified" : "NOT VALID");
  if (check.planned < check.micro_batches) {
    all += base::text(
        "for {} of the {} micro-batches of a step: the order repeats after its warm-up (weft "
        "schedule "
        "plans all)\n",
        check.planned,
        check.micro_batches);
  }
  for (const std::string& complaint : check.complaints) all += complaint + "\n";
  return all;
}

}  // namespace weft::plan
