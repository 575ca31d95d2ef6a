// Layout search small enough to check every answer.
#pragma once

#include <filesystem>

#include "weft/plan/search/layout_space.h"

namespace weft::plan {

inline const std::filesystem::path kHardware = std::filesystem::path(WEFT_SOURCE_DIR) / "hardware";

// Small model of 12 layers with 16 experts, so that every layout can be checked.
inline PlanAsk small_ask() {
  PlanAsk ask;
  config::ModelConfig& model = ask.start.model;
  model.num_layers = 12;
  model.hidden_size = 2048;
  model.ffn_hidden_size = 8192;
  model.num_attention_heads = 16;
  model.num_query_groups = 4;
  model.seq_length = 4096;
  model.vocab_size = 32000;
  model.num_moe_experts = 16;
  model.moe_ffn_hidden_size = 4096;
  model.moe_router_topk = 2;
  set_number(ask.start, DType::BF16);
  ask.start.train.global_batch_size = 64;
  ask.start.runtime.world_size = 16;
  ask.start.runtime.device = config::DeviceKind::Cuda;
  ask.start.runtime.backend = config::CommBackend::Nccl;
  ask.start.hardware.gpu = config::Gpu::H100;
  ask.hardware = find_hardware(kHardware, "h100");
  return ask;
}

}  // namespace weft::plan
