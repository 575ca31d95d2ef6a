#include "weft/config/derived.h"

#include <algorithm>

#include "weft/base/check.h"

namespace weft::config {
namespace {

// A gated feed-forward has three matrices: gate, up and down.
constexpr std::int64_t kGatedMatrices = 3;

std::int64_t attention_parameters(const ModelConfig& model) {
  const std::int64_t q = model.query_width(), kv = model.key_width();
  const std::int64_t matrices = model.hidden_size * (q + 2 * kv) + q * model.hidden_size;
  switch (model.qk_layernorm) {
    case QkNorm::None:
      return matrices;
    case QkNorm::Head:
      return matrices + 2 * model.head_dim();
    case QkNorm::Projection:
      return matrices + q + kv;
  }
  return matrices;
}

}  // namespace

grid::Layout layout_of(const Config& config) {
  const ModelConfig& model = config.model;
  grid::Layout layout;
  layout.tp = model.tensor_model_parallel_size;
  layout.cp = model.context_parallel_size;
  layout.pp = model.pipeline_model_parallel_size;
  layout.ep = model.expert_model_parallel_size;
  layout.etp = model.expert_tensor_parallel_size.value_or(layout.ep > 1 ? 1 : layout.tp);
  if (model.experts() > 0) layout.num_experts = model.experts();
  layout.world = config.runtime.world_size.value_or(grid::fewest_ranks(layout));
  return layout;
}

bool is_on_gpu(const Config& config) {
  const HardwareConfig& hardware = config.hardware;
  return hardware.gpu || !hardware.device_name.empty() || hardware.compute_capability;
}

grid::Fabric fabric_of(const Config& config) {
  const FabricConfig& fabric = config.fabric;
  const auto link = [](double gb_per_second, double latency_us) {
    return grid::Link{.bytes_per_second = gb_per_second * 1e9,
                      .latency_seconds = latency_us * 1e-6};
  };
  return {.ranks_per_node = static_cast<int>(config.runtime.ranks_per_node.value_or(0)),
          .intra = link(fabric.intra_node_gb_per_second, fabric.intra_node_latency_us),
          .inter = link(fabric.inter_node_gb_per_second, fabric.inter_node_latency_us),
          .jitter_seconds = fabric.jitter_us * 1e-6,
          .seed = static_cast<std::uint64_t>(fabric.seed)};
}

ParameterCount parameters_of(const ModelConfig& model) {
  const std::int64_t h = model.hidden_size;
  const std::int64_t moe = model.moe_layers(), dense = model.num_layers - moe;
  const std::int64_t expert = kGatedMatrices * h * model.expert_width();
  const std::int64_t tables = model.share_embeddings_and_output_weights ? 1 : 2;
  const std::int64_t common =
      tables * model.vocab_size * h + h + model.num_layers * (2 * h + attention_parameters(model)) +
      dense * kGatedMatrices * h * model.dense_width() + moe * model.experts() * h;
  return {.total = common + moe * model.experts() * expert,
          .active = common + moe * model.moe_router_topk * expert,
          .experts = moe * model.experts() * expert};
}

double most_parameters(const ModelConfig& model) {
  const auto number = [](std::int64_t value) { return static_cast<double>(value); };
  const double h = number(model.hidden_size);
  const double heads = number(model.num_attention_heads);
  const double head = model.kv_channels ? number(*model.kv_channels) : h / heads;
  const double feed_forward =
      std::max(number(model.dense_width()),
               number(model.experts()) * (number(model.expert_width()) + 1));
  const double attention = heads * head;
  return 2 * number(model.vocab_size) * h + h +
         number(model.num_layers) * (2 * h + 4 * attention * (h + 1) + 3 * h * feed_forward);
}

double flops_per_token(const ModelConfig& model) {
  const auto number = [](std::int64_t value) { return static_cast<double>(value); };
  const double h = number(model.hidden_size);
  const double q = number(model.query_width()), kv = number(model.key_width());
  const double moe = number(model.moe_layers()), dense = number(model.num_layers) - moe;
  // Scores and values over half the sequence each: 2 * q * S / 2.
  const double attention = h * (q + 2 * kv) + q * h + q * number(model.seq_length);
  const double routed = number(model.expert_width()) * number(model.moe_router_topk);
  const double feed_forward =
      number(kGatedMatrices) * h * (number(model.dense_width()) * dense + routed * moe);
  return 6 * (number(model.num_layers) * attention + feed_forward + h * number(model.vocab_size));
}

std::int64_t micro_batches(const TrainConfig& train, std::int64_t dp) {
  const std::int64_t together = train.micro_batch_size * dp;
  CHECK(together >= 1 && train.global_batch_size % together == 0,
        "global batch {} by {}",
        train.global_batch_size,
        together);
  return train.global_batch_size / together;
}

std::int64_t tokens_per_step(const Config& config) {
  return config.train.global_batch_size * config.model.seq_length;
}

}  // namespace weft::config
