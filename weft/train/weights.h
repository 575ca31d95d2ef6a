// Weights from and to Hugging Face folders, under any layout.
#pragma once

#include <array>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "weft/base/files/overwrite.h"
#include "weft/checkpoint/huggingface/huggingface.h"
#include "weft/train/engine.h"

namespace weft::train {

// `config` with the model of a folder: the folder sets every key that decides the computation.
// Layout, sequence length, dtype, dispatcher, auxiliary losses and other keys stay.
config::Config with_model_of(const config::Config& config,
                             const checkpoint::HuggingFaceModel& model);

// Model keys set by such a folder.
inline constexpr std::array kFolderModelKeys = std::to_array<std::string_view>({
    "model.num_layers",
    "model.hidden_size",
    "model.ffn_hidden_size",
    "model.num_attention_heads",
    "model.num_query_groups",
    "model.kv_channels",
    "model.qk_layernorm",
    "model.layernorm_epsilon",
    "model.rotary_base",
    "model.rotary_interleaved",
    "model.rope_type",
    "model.rotary_scaling_factor",
    "model.max_position_embeddings",
    "model.original_max_position_embeddings",
    "model.mscale",
    "model.mscale_all_dim",
    "model.beta_fast",
    "model.beta_slow",
    "model.multi_latent_attention",
    "model.q_lora_rank",
    "model.kv_lora_rank",
    "model.qk_head_dim",
    "model.qk_pos_emb_head_dim",
    "model.v_head_dim",
    "model.latent_layernorm_epsilon",
    "model.vocab_size",
    "model.pad_token_id",
    "model.share_embeddings_and_output_weights",
    "model.num_moe_experts",
    "model.moe_ffn_hidden_size",
    "model.moe_layer_freq",
    "model.moe_router_topk",
    "model.moe_router_pre_softmax",
    "model.moe_router_norm_topk_prob",
    "model.moe_router_score_function",
    "model.moe_router_enable_expert_bias",
    "model.moe_router_num_groups",
    "model.moe_router_group_topk",
    "model.moe_router_group_score_topk",
    "model.moe_router_topk_limited_devices",
    "model.moe_router_topk_scaling_factor",
    "model.moe_shared_expert_intermediate_size",
    "model.moe_shared_expert_gate",
});

// Fills `out` with the elements of a slice of a parameter.
using ReadSlice = std::function<
    void(const std::string& parameter, const tensor::Slice& slice, std::span<float> out)>;

// Each rank reads the parameters it owns, and the optimizer starts from them.
void load_weights(Engine& engine, const ReadSlice& read);
void load_weights(Engine& engine, const checkpoint::HuggingFaceModel& model);

// Rank 0 writes and fetches missing parameters from other ranks. Every rank calls it. If the folder
// cannot be written, rank 0 gets the reason and the others return normally: the save failed, not
// the exchange.
std::optional<std::string> save_weights(Engine& engine,
                                        const std::filesystem::path& folder,
                                        const checkpoint::HuggingFaceConfig& config);

// Variant for a new folder made under that name (checkpoint::NewFolder). Copies the files beside
// the weights from `text_from`; empty: none.
struct NewWeights {
  std::filesystem::path folder;
  base::Overwrite overwrite = base::Overwrite::No;
  std::filesystem::path text_from = {};
};
std::optional<std::string> save_weights(Engine& engine,
                                        const NewWeights& place,
                                        const checkpoint::HuggingFaceConfig& config);

// config.json of the family that matches the model; ConfigError if there is none. Other keys of the
// start folder's config.json are kept.
checkpoint::HuggingFaceConfig huggingface_config_for(
    const config::ModelConfig& model,
    const checkpoint::HuggingFaceConfig* start = nullptr);

}  // namespace weft::train
