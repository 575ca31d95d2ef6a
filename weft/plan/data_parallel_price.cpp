#include "weft/plan/data_parallel_price.h"

#include <algorithm>

#include "weft/base/casts.h"
#include "weft/derive/derived.h"
#include "weft/plan/wire_time.h"

namespace weft::plan {
namespace {

using base::number;

// AdamW reads and writes a master weight and two moments in fp32, reads the gradient and writes the
// weight: bytes of a parameter of the rank's shard.
constexpr double kOptimizerBytes = 30;
// Of every gradient of the rank: set to zero, and read for the norm.
constexpr double kGradientPasses = 2;
// Share of the time that collectives of data-parallel ranks need in which compute beside them
// covers them; the rest is their beginning and their end.
constexpr double kDataCover = 0.9;
// A fully sharded run gathers the weights twice and scatters gradients once in each micro-batch.
constexpr double kShardedGathers = 3;

// Of an exchange that runs under compute.
double uncovered(double seconds, double cover) {
  return std::max((1 - kDataCover) * seconds, seconds - cover);
}

}  // namespace

DataParallelPrice::DataParallelPrice(const config::Config& config, const Hardware& hardware)
    : config_(config), hardware_(hardware) {
  const grid::Layout layout = derive::layout_of(config);
  const std::int64_t stage = layout.world / layout.pp;
  std::int64_t dense = 0, experts = 0;
  for (const derive::RankParameters& rank : derive::rank_parameters(config)) {
    dense = std::max(dense, rank.dense);
    experts = std::max(experts, rank.experts);
  }
  replicated_ = {{{.parameters = number(dense),
                   .replicas = number(stage / layout.tp),
                   .stride = number(layout.tp)},
                  {.parameters = number(experts),
                   .replicas = number(stage / (layout.ep * layout.etp)),
                   .stride = number(layout.ep * layout.etp)}}};
}

bool DataParallelPrice::is_distributed() const {
  return config_.ddp.use_distributed_optimizer || config_.optimizer.use_distributed_optimizer;
}

double DataParallelPrice::exchange_seconds(double bytes_of_parameter) const {
  double seconds = 0;
  for (const Replicated& each : replicated_) {
    seconds += gather_seconds(each.parameters * bytes_of_parameter,
                              group_of(each.replicas, each.stride, hardware_),
                              hardware_);
  }
  return seconds;
}

double DataParallelPrice::exposed(double micro_batches, double forward, double backward) const {
  const double gradient = config_.ddp.grad_reduce_in_fp32 ? 4 : 2;
  const double weight = config_.ddp.fp8_param_gather ? 1 : 2;
  if (config_.ddp.use_megatron_fsdp) {
    const double each = kShardedGathers * exchange_seconds(weight);
    return micro_batches * uncovered(each, forward + backward);
  }
  const bool reduces_early = config_.comm_overlap.overlap_grad_reduce.value_or(
      is_distributed() || config_.ddp.overlap_grad_reduce);
  const bool gathers_late = config_.comm_overlap.overlap_param_gather.value_or(
      is_distributed() || config_.ddp.overlap_param_gather);
  const double reduced = exchange_seconds(gradient) * (is_distributed() ? 1 : 2);
  const double gathered = is_distributed() ? exchange_seconds(weight) : 0;
  return (reduces_early ? uncovered(reduced, backward) : reduced) +
         (gathers_late ? uncovered(gathered, forward) : gathered);
}

double DataParallelPrice::optimizer_seconds() const {
  double seconds = 0;
  const bool fully = config_.ddp.use_megatron_fsdp;
  for (const Replicated& each : replicated_) {
    const double mine = each.parameters / (is_distributed() || fully ? each.replicas : 1);
    const double kept = fully ? mine : each.parameters;
    seconds += (mine * kOptimizerBytes + kept * kGradientPasses * 4) / hardware_.memory_rate();
  }
  return seconds;
}

}  // namespace weft::plan
