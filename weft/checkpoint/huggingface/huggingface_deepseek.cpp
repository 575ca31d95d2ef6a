#include "weft/checkpoint/huggingface/huggingface_deepseek.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/checkpoint/huggingface/huggingface_rope.h"
#include "weft/derive/layer_kind.h"

namespace weft::checkpoint {
namespace {

using base::text;
using config::ModelConfig;
using config::ScoreFunction;

// Epsilon of the norms of compressed values, in Transformers and in DeepSeek's own code,
// independent of rms_norm_eps.
constexpr double kCompressedEpsilon = 1e-6;

// Transformers' defaults for keys of these families.
struct ExpertDefaults {
  std::int64_t shared = 0, dense_layers = 0;
  std::optional<std::int64_t> groups, chosen_groups;
  double scaling = 1;
};

ExpertDefaults expert_defaults(Family family) {
  if (family == Family::DeepseekV2) return {.shared = 2};
  return {.shared = 1, .dense_layers = 3, .groups = 8, .chosen_groups = 4, .scaling = 2.5};
}

// Number of best experts whose scores sum to the score of a group.
std::int64_t counted_in_group(Family family) { return family == Family::DeepseekV3 ? 2 : 1; }

// Variant for the engine's config.
std::int64_t counted_in_group(const ModelConfig& model) {
  const std::int64_t chosen = model.moe_router_group_topk.value_or(1);
  return model.moe_router_group_score_topk.value_or(
      std::max<std::int64_t>(1, model.moe_router_topk / chosen));
}

bool is_limited(const ModelConfig& model) {
  return model.moe_router_num_groups && model.moe_router_group_topk &&
         *model.moe_router_group_topk < *model.moe_router_num_groups;
}

std::optional<std::int64_t> optional_size(const HuggingFaceValues& values,
                                          const char* key,
                                          std::optional<std::int64_t> absent,
                                          std::int64_t most) {
  const StrictJson* value = values.find(key);
  if (value == nullptr) return absent;
  if (value->is_null()) return std::nullopt;
  return as_integer(*value, key, values.file(), 1, most);
}

void expect(const HuggingFaceValues& values, const char* key, std::int64_t wanted, const char* is) {
  const StrictJson* value = values.find_value(key);
  if (value == nullptr || *value == wanted) return;
  throw_wrong_value(*value, key, values.file(), text("{}: {}", wanted, is));
}

void read_groups(const HuggingFaceValues& values, Family family, ModelConfig& model) {
  const ExpertDefaults defaults = expert_defaults(family);
  const auto groups = optional_size(values, "n_group", defaults.groups, kMostExperts);
  const auto chosen = optional_size(values, "topk_group", defaults.chosen_groups, kMostExperts);
  const StrictJson* method = values.find_value("topk_method");
  const bool grouped =
      family == Family::DeepseekV3 || (method != nullptr && *method == "group_limited_greedy");
  if (!grouped || groups.value_or(1) == 1) return;
  model.moe_router_num_groups = groups;
  model.moe_router_group_topk = chosen.value_or(*groups);
  if (is_limited(model) && counted_in_group(model) != counted_in_group(family)) {
    model.moe_router_group_score_topk = counted_in_group(family);
  }
}

// Layer kinds with dense layers before `first`.
std::vector<std::int64_t> layers_from(std::int64_t first, std::int64_t layers) {
  if (first == 0) return {1};
  std::vector<std::int64_t> moe(static_cast<std::size_t>(layers), 1);
  std::fill_n(moe.begin(), first, 0);
  return moe;
}

// Number of leading dense layers; nullopt: a dense layer follows a MoE layer.
std::optional<std::int64_t> dense_in_front(const ModelConfig& model) {
  std::int64_t first = 0;
  while (first < model.num_layers && !model.is_moe_layer(first)) ++first;
  for (std::int64_t i = first; i < model.num_layers; ++i) {
    if (!model.is_moe_layer(i)) return std::nullopt;
  }
  return first;
}

}  // namespace

void read_latent_attention(const HuggingFaceValues& values, Family family, ModelConfig& model) {
  model.multi_latent_attention = true;
  model.num_attention_heads =
      values.size("num_attention_heads", model.num_attention_heads, kMostHeads);
  model.q_lora_rank = optional_size(values, "q_lora_rank", 1536, kLargestWidth);
  model.kv_lora_rank = values.size("kv_lora_rank", 512, kLargestWidth);
  model.qk_head_dim = values.size("qk_nope_head_dim", 128, kLargestHead);
  model.qk_pos_emb_head_dim = values.size("qk_rope_head_dim", 64, kLargestHead);
  model.v_head_dim = values.size("v_head_dim", 128, kLargestHead);
  if (!values.flag("rope_interleave", true)) {
    if (family == Family::DeepseekV2) {
      throw_wrong_value(*values.find("rope_interleave"),
                        "rope_interleave",
                        values.file(),
                        "true: neighbours turn together in every deepseek_v2 model");
    }
    model.rotary_interleaved = false;
  }
  if (model.layernorm_epsilon != kCompressedEpsilon) {
    model.latent_layernorm_epsilon = kCompressedEpsilon;
  }
  expect(values,
         "num_key_value_heads",
         model.num_attention_heads,
         "num_attention_heads (latent attention has no groups of heads)");
  expect(values, "head_dim", model.qk_pos_emb_head_dim, "qk_rope_head_dim");
  expect(values, "qk_head_dim", model.latent_head_dim(), "qk_nope_head_dim + qk_rope_head_dim");
}

void read_deepseek_experts(const HuggingFaceValues& values, Family family, ModelConfig& model) {
  const ExpertDefaults defaults = expert_defaults(family);
  const std::int64_t width = *model.moe_ffn_hidden_size;
  const StrictJson* dense = values.find("first_k_dense_replace");
  const std::int64_t first =
      dense == nullptr
          ? std::min(defaults.dense_layers, model.num_layers)
          : as_integer(*dense, "first_k_dense_replace", values.file(), 0, model.num_layers);
  if (first == model.num_layers) {
    model.num_moe_experts = std::nullopt;
    return;
  }
  model.moe_layer_freq = layers_from(first, model.num_layers);
  const StrictJson* shared = values.find("n_shared_experts");
  const std::int64_t count = shared == nullptr ? defaults.shared
                             : shared->is_null()
                                 ? 0
                                 : as_integer(*shared, "n_shared_experts", values.file(), 0, 1024);
  if (count > 0) model.moe_shared_expert_intermediate_size = count * width;
  const double scaling = values.number("routed_scaling_factor", defaults.scaling, {1e-6, 1e6});
  if (scaling != 1) model.moe_router_topk_scaling_factor = scaling;
  const bool v3 = family == Family::DeepseekV3;
  // A single chosen expert keeps its score here; renormalised it would be 1.
  if (v3 && model.moe_router_topk == 1 && values.find("norm_topk_prob") == nullptr) {
    throw base::ConfigError(
        text("'{}': norm_topk_prob is missing, which means true; with num_experts_per_tok 1 only "
             "false is implemented",
             values.file()));
  }
  model.moe_router_score_function = v3 ? ScoreFunction::Sigmoid : ScoreFunction::Softmax;
  model.moe_router_enable_expert_bias = v3;
  model.moe_router_pre_softmax = !v3;
  model.moe_router_norm_topk_prob = false;
  read_groups(values, family, model);
}

std::vector<Inexpressible> not_deepseek(const ModelConfig& model, Family family) {
  std::vector<Inexpressible> all;
  const auto hold = [&](bool holds, std::string_view key, std::string value, std::string needed) {
    if (!holds) all.push_back({key, std::move(value), std::move(needed)});
  };
  const bool v3 = family == Family::DeepseekV3;
  const ScoreFunction score = v3 ? ScoreFunction::Sigmoid : ScoreFunction::Softmax;
  hold(model.multi_latent_attention, "multi_latent_attention", "false", "latent attention");
  hold(v3 || model.rotary_interleaved.value_or(true),
       "rotary_interleaved",
       "false",
       "neighbours that turn together");
  hold(model.latent_epsilon() == kCompressedEpsilon,
       "latent_layernorm_epsilon",
       text("{}", model.latent_epsilon()),
       text("{} in the norms of what is compressed", kCompressedEpsilon));
  hold(model.rope_type == config::RopeType::Rope || model.mscale_all_dim == 0 || model.mscale > 0,
       "mscale",
       text("{}", model.mscale),
       "an mscale beside mscale_all_dim");
  hold(!stretched_positions(model) || is_whole_stretch(model),
       "rotary_scaling_factor",
       text("{}", model.rotary_scaling_factor),
       text("a factor of at least 1 and, after the stretch of {}, a whole number of positions, at "
            "most {}",
            model.original_max_position_embeddings,
            kLongestSequence));
  hold(model.experts() > 0, "num_moe_experts", "null", "experts");
  hold(derive::shared_expert_width(model) > 0,
       "moe_shared_expert_intermediate_size",
       "null",
       "shared experts");
  hold(dense_in_front(model).has_value(),
       "moe_layer_freq",
       text("{}", model.moe_layer_freq),
       "dense layers only in front");
  hold(model.moe_router_score_function == score,
       "moe_router_score_function",
       std::string(config::word(model.moe_router_score_function)),
       text("{} scores", config::word(score)));
  hold(model.moe_router_enable_expert_bias == v3,
       "moe_router_enable_expert_bias",
       text("{}", model.moe_router_enable_expert_bias),
       v3 ? "a bias for each expert" : "no bias for each expert");
  hold(v3 || (model.moe_router_pre_softmax && !model.moe_router_norm_topk_prob),
       "moe_router_pre_softmax",
       text("{}", model.moe_router_pre_softmax),
       "softmax over all experts, not renormalised");
  hold(!is_limited(model) || counted_in_group(model) == counted_in_group(family),
       "moe_router_group_topk",
       text("{}", model.moe_router_group_topk.value_or(1)),
       text("groups scored by their best {} experts", counted_in_group(family)));
  const std::int64_t shared = derive::shared_expert_width(model);
  hold(shared % model.expert_width() == 0,
       "moe_shared_expert_intermediate_size",
       text("{}", shared),
       text("shared experts as wide as the others ({})", model.expert_width()));
  hold(shared == 0 || !model.moe_shared_expert_gate,
       "moe_shared_expert_gate",
       "true",
       "no gate on them");
  return all;
}

void write_deepseek(const ModelConfig& model, Family family, base::Json& json) {
  const bool v3 = family == Family::DeepseekV3;
  json["num_key_value_heads"] = model.num_attention_heads;
  json["q_lora_rank"] = nullptr;
  if (model.q_lora_rank) json["q_lora_rank"] = *model.q_lora_rank;
  json["kv_lora_rank"] = model.kv_lora_rank;
  json["qk_nope_head_dim"] = model.qk_head_dim;
  json["qk_rope_head_dim"] = model.qk_pos_emb_head_dim;
  json["v_head_dim"] = model.v_head_dim;
  if (v3) json["rope_interleave"] = model.rotary_interleaved.value_or(true);
  json["attention_bias"] = false;
  json["intermediate_size"] = model.dense_width();
  json["moe_intermediate_size"] = model.expert_width();
  json["n_routed_experts"] = model.experts();
  json["n_shared_experts"] = nullptr;
  if (const std::int64_t shared = derive::shared_expert_width(model); shared > 0) {
    json["n_shared_experts"] = shared / model.expert_width();
  }
  json["first_k_dense_replace"] = dense_in_front(model).value_or(0);
  json["moe_layer_freq"] = 1;
  // Groups that do not limit the choice are written as one group.
  const bool limited = is_limited(model);
  json["n_group"] = limited ? *model.moe_router_num_groups : 1;
  json["topk_group"] = limited ? *model.moe_router_group_topk : 1;
  json["topk_method"] = v3 ? "noaux_tc" : limited ? "group_limited_greedy" : "greedy";
  json["scoring_func"] = v3 ? "sigmoid" : "softmax";
  json["norm_topk_prob"] = v3 && model.moe_router_topk > 1;
  json["routed_scaling_factor"] = model.moe_router_topk_scaling_factor.value_or(1);
  if (v3) json["num_nextn_predict_layers"] = 0;
}

}  // namespace weft::checkpoint
