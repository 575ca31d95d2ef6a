#include "weft/derive/derived.h"

#include "weft/base/check.h"

namespace weft::derive {

using namespace config;

grid::Layout layout_of(const Config& config) {
  const ModelConfig& model = config.model;
  grid::Layout layout;
  layout.tp = model.tensor_model_parallel_size;
  layout.cp = model.context_parallel_size;
  layout.pp = model.pipeline_model_parallel_size;
  layout.ep = model.expert_model_parallel_size;
  layout.etp = model.expert_shards();
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

bool saves_beside(const Config& config) {
  return config.checkpoint.async_save && !config.checkpoint.save.empty();
}

}  // namespace weft::derive
