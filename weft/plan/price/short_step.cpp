#include "weft/plan/price/short_step.h"

#include <algorithm>

#include "weft/derive/derived.h"
#include "weft/derive/pipeline.h"

namespace weft::plan {
namespace {

std::int64_t data_parallel(const grid::Layout& layout) {
  return layout.world / (layout.tp * layout.cp * layout.pp);
}

}  // namespace

std::int64_t micro_batches_of(const config::Config& config) {
  return derive::micro_batches(config.train, data_parallel(derive::layout_of(config)));
}

std::int64_t fewest_micro_batches(const config::ModelConfig& model, std::int64_t all) {
  const std::int64_t group = derive::micro_batch_group(model);
  const std::int64_t groups = derive::virtual_stages(model) == 1 ? 4 : 5;
  return std::min(all, group * groups + all % group);
}

config::Config with_micro_batches(config::Config config, std::int64_t micro_batches) {
  const std::int64_t dp = data_parallel(derive::layout_of(config));
  config.train.global_batch_size = micro_batches * config.train.micro_batch_size * dp;
  return config;
}

WholeStep whole_step(const config::Config& config,
                     const std::function<double(std::int64_t micro_batches)>& seconds_of) {
  WholeStep step{.micro_batches = micro_batches_of(config)};
  step.run = fewest_micro_batches(config.model, step.micro_batches);
  step.run_seconds = seconds_of(step.run);
  const std::int64_t group = derive::micro_batch_group(config.model);
  // Without a remainder, which the short step includes.
  step.repeated = (step.micro_batches - step.run) / group;
  if (step.repeated > 0) step.group_seconds = seconds_of(step.run + group) - step.run_seconds;
  return step;
}

}  // namespace weft::plan
