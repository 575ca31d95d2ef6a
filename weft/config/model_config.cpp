#include "weft/config/model_config.h"

#include <algorithm>
#include <cmath>

namespace weft::config {

bool ModelConfig::is_moe_layer(std::int64_t layer) const {
  if (experts() == 0) return false;
  if (moe_layer_freq.size() == 1) {
    // A single number is a period; 0 is legal only for a model of one layer.
    const std::int64_t period = moe_layer_freq.front();
    return period > 0 && layer % period == 0;
  }
  // A rule refuses lists that are too short, but other rules call this first.
  return layer < std::ssize(moe_layer_freq) && moe_layer_freq[static_cast<std::size_t>(layer)] == 1;
}

std::int64_t ModelConfig::padded_vocab_size() const {
  if (!should_pad_vocab) return vocab_size;
  const std::int64_t unit = make_vocab_size_divisible_by * tensor_model_parallel_size;
  return (vocab_size + unit - 1) / unit * unit;
}

double ModelConfig::aux_loss_coeff(LoadBalancing kind) const {
  double sum = 0;
  for (std::size_t i = 0; i < moe_router_load_balancing_type.size(); ++i) {
    const bool listed = moe_router_load_balancing_type[i] == kind;
    if (listed && i < moe_aux_loss_coeff.size()) sum += moe_aux_loss_coeff[i];
  }
  return sum;
}

std::int64_t ModelConfig::moe_layers() const {
  std::int64_t count = 0;
  for (std::int64_t layer = 0; layer < num_layers; ++layer) count += is_moe_layer(layer) ? 1 : 0;
  return count;
}

ExpertGrid ModelConfig::expert_grid() const {
  const std::int64_t shards = expert_shards();
  return {.experts = experts() * shards,
          .per_token = moe_router_topk * shards,
          .ranks = expert_model_parallel_size * shards,
          .shards = shards};
}

std::int64_t ModelConfig::expert_capacity(std::int64_t tokens) const {
  const double mean =
      static_cast<double>(tokens * moe_router_topk) / static_cast<double>(experts());
  const double rows = std::ceil(mean * moe_expert_capacity_factor.value());
  return std::min(tokens, static_cast<std::int64_t>(rows));
}

std::int64_t ModelConfig::row_budget(std::int64_t tokens) const {
  const ExpertGrid grid = expert_grid();
  const auto mean = static_cast<double>(tokens * grid.per_token);
  // Upper bound: every token of every rank, with all choices that fit here.
  const std::int64_t most = grid.ranks * tokens * std::min(moe_router_topk, grid.local());
  return std::min(most, static_cast<std::int64_t>(mean * moe_expert_rank_capacity_factor.value()));
}

bool dispatches_by(const ModelConfig& model, FlexBackend backend) {
  return model.moe_token_dispatcher_type == Dispatcher::Flex &&
         model.moe_flex_dispatcher_backend == backend;
}

}  // namespace weft::config
