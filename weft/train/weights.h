// Weights from and to Hugging Face folders, under any layout.
#pragma once

#include <array>
#include <filesystem>
#include <string_view>

#include "weft/checkpoint/huggingface.h"
#include "weft/train/engine.h"

namespace weft::train {

// `config` with the model a folder holds: everything that decides what is computed comes from the
// folder; layout, sequence length, dtype, dispatcher and auxiliary losses stay.
config::Config with_model_of(const config::Config& config,
                             const checkpoint::HuggingFaceModel& model);

// The model keys that with_model_of keeps.
inline constexpr std::array<std::string_view, 17> kKeptModelKeys{
    "model.seq_length",
    "model.params_dtype",
    "model.init_method_std",
    "model.moe_router_load_balancing_type",
    "model.moe_aux_loss_coeff",
    "model.moe_z_loss_coeff",
    "model.moe_token_dispatcher_type",
    "model.tensor_model_parallel_size",
    "model.pipeline_model_parallel_size",
    "model.context_parallel_size",
    "model.expert_model_parallel_size",
    "model.expert_tensor_parallel_size",
    "model.virtual_pipeline_model_parallel_size",
    "model.pipeline_model_parallel_layout",
    "model.microbatch_group_size_per_vp_stage",
    "model.ep_overlap_early_attn_memory_release",
    "model.overlap_dispatch_backward_with_experts_wgrad"};

// Each rank reads what it owns.
void load_weights(Engine& engine, const checkpoint::HuggingFaceModel& model);

// Rank 0 writes, fetching what it does not hold from the ranks that do. Every rank calls it.
void save_weights(Engine& engine,
                  const std::filesystem::path& folder,
                  const checkpoint::HuggingFaceConfig& config);

// The family whose config.json can say what the model computes; ConfigError where there is none.
checkpoint::HuggingFaceConfig huggingface_config_for(const config::ModelConfig& model);

}  // namespace weft::train
