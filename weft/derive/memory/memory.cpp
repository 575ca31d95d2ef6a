#include "weft/derive/memory/memory.h"

#include <algorithm>
#include <cmath>

#include "weft/derive/derived.h"
#include "weft/derive/memory/optimizer_offload.h"

namespace weft::derive {

using namespace config;
namespace {

// Number of ranks that shard each kind of state; 1: not sharded.
struct Shares {
  std::int64_t weights = 1;
  std::int64_t gradients = 1;
  std::int64_t optimizer = 1;
};

Shares shares_of(const Config& config, std::int64_t ranks) {
  const bool distributed =
      config.ddp.use_distributed_optimizer || config.optimizer.use_distributed_optimizer;
  const Shares plain{.optimizer = distributed ? ranks : 1};
  if (!config.ddp.use_megatron_fsdp) return plain;
  switch (config.ddp.data_parallel_sharding_strategy) {
    case ShardingStrategy::NoShard:
      return plain;
    case ShardingStrategy::Optim:
      return {.optimizer = ranks};
    case ShardingStrategy::OptimGrads:
      return {.gradients = ranks, .optimizer = ranks};
    case ShardingStrategy::OptimGradsParams:
      return {.weights = ranks, .gradients = ranks, .optimizer = ranks};
  }
  return plain;
}

std::int64_t shared(std::int64_t bytes, std::int64_t ranks) { return (bytes + ranks - 1) / ranks; }

constexpr std::int64_t kUntrainedBytes = 4;

// Parameters of a rank, of `parameters` shared by `ranks`, with optimizer state in host memory.
std::int64_t offloaded(const Config& config, std::int64_t parameters, std::int64_t ranks) {
  const double own = static_cast<double>(shared(parameters, ranks));
  return static_cast<std::int64_t>(std::ceil(optimizer_offload(config).fraction * own));
}

bool is_fp32(const Config& config) {
  return config.model.params_dtype == base::DType::F32 && !config.model.bf16 && !config.model.fp16;
}

bool has_bf16_weights(const Config& config) {
  return config.model.bf16 || config.model.params_dtype == base::DType::BF16;
}

}  // namespace

bool keeps_half_masters(const Config& config) {
  return has_bf16_weights(config) && config.optimizer.use_precision_aware_optimizer &&
         config.optimizer.main_params_dtype == base::DType::F16;
}

bool keeps_remainders(const Config& config) {
  const OptimizerConfig& optimizer = config.optimizer;
  return has_bf16_weights(config) && optimizer.use_precision_aware_optimizer &&
         optimizer.store_param_remainders && !optimizer.optimizer_cpu_offload &&
         optimizer.main_params_dtype == base::DType::F32;
}

ParameterBytes bytes_of_parameter(const Config& config) {
  ParameterBytes bytes{.weight = 2, .gradient = 4, .optimizer = 12};
  if (is_fp32(config)) bytes = {.weight = 4, .gradient = 4, .optimizer = 8};
  const OptimizerConfig& optimizer = config.optimizer;
  if (!optimizer.use_precision_aware_optimizer) return bytes;
  if (optimizer.main_grads_dtype == base::DType::BF16) bytes.gradient = 2;
  bytes.optimizer =
      base::size_of(optimizer.exp_avg_dtype) + base::size_of(optimizer.exp_avg_sq_dtype);
  if (is_fp32(config)) return bytes;
  const bool is_small = keeps_remainders(config) || optimizer.main_params_dtype == base::DType::F16;
  bytes.optimizer += is_small ? 2 : 4;
  return bytes;
}

std::int64_t ranks_of_instance(const Config& config, std::int64_t ranks) {
  const std::int64_t instances = config.ddp.num_distributed_optimizer_instances;
  return std::max<std::int64_t>(1, ranks / std::max<std::int64_t>(1, instances));
}

StateBytes state_bytes(const Config& config, const RankParameters& parameters) {
  const grid::Layout layout = layout_of(config);
  const ParameterBytes each = bytes_of_parameter(config);
  const auto shares_among = [&](std::int64_t ranks) {
    return shares_of(config, ranks_of_instance(config, ranks));
  };
  const Shares dense = shares_among(layout.world / (layout.tp * layout.pp));
  const Shares experts = shares_among(layout.world / (layout.etp * layout.ep * layout.pp));
  // In host memory, fp32 weights have a master copy too.
  const std::int64_t each_there = each.optimizer + (is_fp32(config) ? 4 : 0);
  const std::int64_t there = offloaded(config, parameters.dense, dense.optimizer) +
                             offloaded(config, parameters.experts, experts.optimizer);
  return {.weights = shared(each.weight * parameters.dense, dense.weights) +
                     shared(each.weight * parameters.experts, experts.weights) +
                     kUntrainedBytes * parameters.untrained,
          .gradients = shared(each.gradient * parameters.dense, dense.gradients) +
                       shared(each.gradient * parameters.experts, experts.gradients),
          .optimizer = shared(each.optimizer * parameters.dense, dense.optimizer) +
                       shared(each.optimizer * parameters.experts, experts.optimizer) -
                       each.optimizer * there,
          .offloaded = each_there * there};
}

}  // namespace weft::derive
