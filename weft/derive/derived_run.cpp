#include "weft/derive/derived_run.h"

#include "weft/base/check.h"
#include "weft/derive/derived.h"

namespace weft::derive {

using namespace config;
namespace {

std::vector<DerivedRank> ranks_of(const Config& config) {
  const std::vector<RankParameters> parameters = rank_parameters(config);
  std::vector<DerivedRank> ranks(parameters.size());
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    ranks[i].parameters = parameters[i];
    ranks[i].bytes = state_bytes(config, parameters[i]);
  }
  const std::vector<Stage> stages = stages_of(config.model).all;
  const Pipeline pipeline = pipeline_of(config);
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const int rank = pipeline.rank_of(static_cast<int>(i));
    ranks[static_cast<std::size_t>(rank)].stages.push_back(stages[i]);
  }
  return ranks;
}

}  // namespace

DerivedRun derived_run(const Config& config) {
  const grid::Layout layout = layout_of(config);
  CHECK(grid::layout_complaints(layout).empty(), "an illegal layout of {} ranks", layout.world);
  const std::int64_t dp = layout.world / (layout.tp * layout.cp * layout.pp);
  return {.layout = layout,
          .vpp = virtual_stages(config.model),
          .dp = dp,
          .edp = layout.world / (layout.etp * layout.ep * layout.pp),
          .micro_batches = micro_batches(config.train, dp),
          .tokens_per_step = tokens_per_step(config),
          .parameters = parameters_of(config.model),
          .flops_per_token = flops_per_token(config.model),
          .ranks = ranks_of(config),
          .dispatch = dispatch_of(config)};
}

}  // namespace weft::derive
