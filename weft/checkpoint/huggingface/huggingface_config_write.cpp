#include <array>

#include "weft/base/error.h"
#include "weft/base/json.h"
#include "weft/base/text.h"
#include "weft/checkpoint/huggingface/huggingface_balance.h"
#include "weft/checkpoint/huggingface/huggingface_config.h"
#include "weft/checkpoint/huggingface/huggingface_deepseek.h"
#include "weft/checkpoint/huggingface/huggingface_rope.h"
#include "weft/derive/layer_kind.h"

namespace weft::checkpoint {
namespace {

using base::text;
using config::QkNorm;

constexpr std::array<std::string_view, 5> kClasses{"Qwen3MoeForCausalLM",
                                                   "MixtralForCausalLM",
                                                   "OlmoeForCausalLM",
                                                   "DeepseekV3ForCausalLM",
                                                   "DeepseekV2ForCausalLM"};
constexpr std::array<QkNorm, 5> kQkNorms{QkNorm::Head,
                                         QkNorm::None,
                                         QkNorm::Projection,
                                         QkNorm::None,
                                         QkNorm::None};

std::size_t row(Family family) { return static_cast<std::size_t>(family); }

// True if scores are renormalised. Softmax over selected logits equals softmax over all,
// renormalised.
bool renormalises(const config::ModelConfig& model) {
  return model.moe_router_norm_topk_prob || !model.moe_router_pre_softmax;
}

std::vector<std::int64_t> dense_layers(const config::ModelConfig& model) {
  std::vector<std::int64_t> dense;
  for (std::int64_t i = 0; i < model.num_layers; ++i) {
    if (!model.is_moe_layer(i)) dense.push_back(i);
  }
  return dense;
}

// Complains about settings that only DeepSeek's families can express.
template <typename Complain>
void complain_about_deepseek(const config::ModelConfig& model, const Complain& complain) {
  if (model.multi_latent_attention) complain("multi_latent_attention", true, "plain heads");
  if (model.rope_type != config::RopeType::Rope) {
    complain("rope_type", config::word(model.rope_type), "positions that are not stretched");
  }
  if (model.rotary_interleaved.value_or(false)) {
    complain("rotary_interleaved", true, "halves of a head that turn together");
  }
  if (model.moe_router_score_function != config::ScoreFunction::Softmax) {
    complain("moe_router_score_function",
             config::word(model.moe_router_score_function),
             "softmax scores");
  }
  if (model.moe_router_enable_expert_bias) {
    complain("moe_router_enable_expert_bias", true, "no bias for each expert");
  }
  if (model.moe_router_num_groups) {
    complain("moe_router_num_groups", *model.moe_router_num_groups, "no groups of experts");
  }
  if (model.moe_router_topk_scaling_factor.value_or(1) != 1) {
    complain("moe_router_topk_scaling_factor",
             *model.moe_router_topk_scaling_factor,
             "probabilities that are not scaled");
  }
  if (const std::int64_t width = derive::shared_expert_width(model); width > 0) {
    complain("moe_shared_expert_intermediate_size", width, "no shared experts");
  }
}

void check_expressible(const config::ModelConfig& model, Family family) {
  std::vector<std::string> complaints;
  const auto complain = [&](std::string_view key, const auto& value, std::string_view needed) {
    complaints.push_back(
        text("model.{}={}: a Hugging Face {} model has {}", key, value, word(family), needed));
  };
  if (is_deepseek(family)) {
    for (const Inexpressible& one : not_deepseek(model, family)) {
      complain(one.key, one.value, one.needed);
    }
  } else {
    complain_about_deepseek(model, complain);
  }
  if (!model.multi_latent_attention && model.qk_layernorm != kQkNorms[row(family)]) {
    complain("qk_layernorm",
             config::word(model.qk_layernorm),
             text("model.qk_layernorm={}", config::word(kQkNorms[row(family)])));
  }
  const std::vector<std::int64_t> dense = dense_layers(model);
  if ((family == Family::Mixtral || family == Family::Olmoe) && !dense.empty()) {
    complain("moe_layer_freq", model.moe_layer_freq, "experts in every layer");
  }
  if (family == Family::Mixtral && !renormalises(model)) {
    complain("moe_router_norm_topk_prob", false, "renormalised probabilities");
  }
  if (family == Family::Olmoe && model.query_width() != model.hidden_size) {
    complain("kv_channels", model.head_dim(), "heads of hidden_size / num_attention_heads");
  }
  if (!complaints.empty()) throw base::ConfigError(std::move(complaints));
}

void add_family_keys(base::Json& json, const config::ModelConfig& model, Family family) {
  switch (family) {
    case Family::Qwen3Moe:
      json["head_dim"] = model.head_dim();
      json["intermediate_size"] = model.dense_width();
      json["moe_intermediate_size"] = model.expert_width();
      json["num_experts"] = model.experts();
      json["norm_topk_prob"] = renormalises(model);
      json["decoder_sparse_step"] = 1;
      // Without experts every layer is dense anyway.
      json["mlp_only_layers"] =
          model.experts() == 0 ? std::vector<std::int64_t>{} : dense_layers(model);
      json["attention_bias"] = false;
      json["use_sliding_window"] = false;
      json["sliding_window"] = nullptr;
      return;
    case Family::Mixtral:
      json["head_dim"] = model.head_dim();
      json["intermediate_size"] = model.expert_width();
      json["num_local_experts"] = model.experts();
      json["router_jitter_noise"] = 0.0;
      json["sliding_window"] = nullptr;
      return;
    case Family::Olmoe:
      json["intermediate_size"] = model.expert_width();
      json["num_experts"] = model.experts();
      json["norm_topk_prob"] = renormalises(model);
      json["attention_bias"] = false;
      json["clip_qkv"] = nullptr;
      return;
    case Family::DeepseekV3:
    case Family::DeepseekV2:
      return write_deepseek(model, family, json);
  }
}

}  // namespace

// Uses the spellings of Transformers 4, which Transformers 5 still reads.
std::string huggingface_config_text(const HuggingFaceConfig& config) {
  const config::ModelConfig& model = config.model;
  check_expressible(model, config.family);
  base::Json json;
  json["architectures"] = std::vector<std::string_view>{kClasses[row(config.family)]};
  json["model_type"] = word(config.family);
  json["torch_dtype"] = model.params_dtype == base::DType::F32 ? "float32" : "bfloat16";
  json["vocab_size"] = model.vocab_size;
  json["hidden_size"] = model.hidden_size;
  json["num_hidden_layers"] = model.num_layers;
  json["num_attention_heads"] = model.num_attention_heads;
  json["num_key_value_heads"] = model.query_groups();
  json["num_experts_per_tok"] = model.moe_router_topk;
  add_family_keys(json, model, config.family);
  json["hidden_act"] = "silu";
  json["max_position_embeddings"] =
      stretched_positions(model).value_or(model.max_position_embeddings.value_or(model.seq_length));
  json["rms_norm_eps"] = model.layernorm_epsilon;
  write_rope(model, json);
  json["attention_dropout"] = 0.0;
  json["initializer_range"] = model.init_method_std;
  if (!is_deepseek(config.family)) json["output_router_logits"] = false;
  write_balance(model, config.family, json);
  json["tie_word_embeddings"] = model.share_embeddings_and_output_weights;
  const auto id = [](const std::optional<std::int64_t>& token) {
    return token ? base::Json(*token) : base::Json();
  };
  const std::vector<std::int64_t>& ends = config.eos_token_ids;
  json["bos_token_id"] = id(config.bos_token_id);
  json["eos_token_id"] = ends.size() > 1 ? base::Json(ends)
                         : ends.empty()  ? base::Json()
                                         : base::Json(ends[0]);
  json["pad_token_id"] = id(model.pad_token_id);
  json["use_cache"] = config.use_cache;
  return json.dump(2) + "\n";
}

}  // namespace weft::checkpoint
