#include "weft/checkpoint/huggingface/shape_families.h"

#include <algorithm>
#include <array>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/checkpoint/huggingface/huggingface_deepseek.h"

namespace weft::checkpoint {
namespace {

using base::text;
using config::ModelConfig;
using config::QkNorm;
using config::ScoreFunction;

// Period n: every n-th layer is of kind `word`, all others of `other`. ConfigError if the list has
// no such period.
std::int64_t step_of(const StrictJson& types,
                     std::string_view word,
                     std::string_view other,
                     const ShapeValues& values,
                     const ModelConfig& model) {
  const auto is_all = [&](std::int64_t step) {
    for (std::int64_t i = 0; i < model.num_layers; ++i) {
      const bool full = (i + 1) % step == 0;
      if (types[static_cast<std::size_t>(i)] != (full ? word : other)) return false;
    }
    return true;
  };
  if (types.is_array() && std::ssize(types) == model.num_layers) {
    for (std::int64_t step = 1; step <= model.num_layers; ++step) {
      if (is_all(step)) return step;
    }
  }
  throw_wrong_value(types,
                    "layer_types",
                    values.file(),
                    text("{} \"{}\", and \"{}\" in every n-th layer",
                         base::counted(model.num_layers, "layer"),
                         other,
                         word));
}

void read_window(ShapeValues& values, ModelConfig& model) {
  const std::int64_t window = values.size_or("sliding_window", 0, kLongestSequence);
  const StrictJson* types = values.find("layer_types");
  if (window == 0) return;
  if (types != nullptr) {
    const bool all_full = types->is_array() && std::ranges::all_of(*types, [](const auto& type) {
                            return type == "full_attention";
                          });
    if (all_full) return;
    model.window_attn_skip_freq =
        step_of(*types, "full_attention", "sliding_attention", values, model);
  }
  model.window_size = window;
}

void read_dense(ShapeValues& values, ModelConfig& model) {
  read_shape_heads(values, model);
  read_shape_rope(values, model);
  values.expect_off("mlp_bias", "false: biases of the feed-forward are not counted");
}

void read_llama(ShapeValues& values, ModelConfig& model) {
  read_dense(values, model);
  values.expect_off("attention_bias", "false: a bias of the output projection is not counted");
}

void read_mistral(ShapeValues& values, ModelConfig& model) {
  read_llama(values, model);
  read_window(values, model);
}

// Qwen's window is off unless use_sliding_window is set, and starts at max_window_layers.
void pass_over_window(ShapeValues& values) {
  values.find("sliding_window");
  values.find("layer_types");
  if (!values.flag_or("use_sliding_window", false)) return;
  values.remarks.emplace_back("sliding windows of its later layers: all attention counts as full");
}

void read_qwen2(ShapeValues& values, ModelConfig& model) {
  read_dense(values, model);
  pass_over_window(values);
  model.add_qkv_bias = true;
}

void read_qwen3(ShapeValues& values, ModelConfig& model) {
  read_llama(values, model);
  pass_over_window(values);
  model.qk_layernorm = QkNorm::Head;
}

void require_few(const ShapeValues& values, const ModelConfig& model) {
  const std::int64_t experts = model.num_moe_experts.value_or(0);
  if (experts * model.num_layers <= kMostLayersTimesExperts) return;
  throw base::ConfigError(text("'{}': {} layers of {} experts; at most {} experts in all are read",
                               values.file(),
                               model.num_layers,
                               experts,
                               kMostLayersTimesExperts));
}

void set_experts(ShapeValues& values, const char* count, const char* width, ModelConfig& model) {
  model.num_moe_experts = values.size(count, kMostExperts);
  model.moe_router_topk = values.size("num_experts_per_tok", kMostExperts);
  model.moe_ffn_hidden_size = values.size(width, kLargestWidth);
  require_few(values, model);
}

// Dense layers follow from mlp_only_layers and from decoder_sparse_step, which counts from 1.
void read_qwen_experts(ShapeValues& values, ModelConfig& model) {
  set_experts(values, "num_experts", "moe_intermediate_size", model);
  model.moe_router_pre_softmax = true;
  const std::int64_t step = values.size_or("decoder_sparse_step", 1, kMostLayers);
  std::vector<std::int64_t> moe(static_cast<std::size_t>(model.num_layers));
  for (std::int64_t i = 0; i < model.num_layers; ++i) {
    moe[static_cast<std::size_t>(i)] = (i + 1) % step == 0 ? 1 : 0;
  }
  if (const StrictJson* dense = values.find("mlp_only_layers")) {
    if (!dense->is_array()) throw_wrong_value(*dense, "mlp_only_layers", values.file(), "a list");
    for (const StrictJson& layer : *dense) {
      moe[static_cast<std::size_t>(
          as_integer(layer, "mlp_only_layers", values.file(), 0, model.num_layers - 1))] = 0;
    }
  }
  if (std::ranges::count(moe, 0) > 0) model.moe_layer_freq = std::move(moe);
  if (const std::int64_t shared =
          values.count_or("shared_expert_intermediate_size", 0, kLargestWidth);
      shared > 0) {
    model.moe_shared_expert_intermediate_size = shared;
    model.moe_shared_expert_gate = true;
  }
}

void read_qwen2_moe(ShapeValues& values, ModelConfig& model) {
  read_dense(values, model);
  pass_over_window(values);
  model.add_qkv_bias = values.flag_or("qkv_bias", true);
  read_qwen_experts(values, model);
  model.moe_router_norm_topk_prob = values.flag_or("norm_topk_prob", false);
}

void read_delta_nets(ShapeValues& values, ModelConfig& model) {
  model.linear_attention_freq = values.size_or("full_attention_interval", 4, kMostLayers);
  if (const StrictJson* types = values.find("layer_types")) {
    model.linear_attention_freq =
        step_of(*types, "full_attention", "linear_attention", values, model);
  }
  model.linear_conv_kernel_dim = values.size("linear_conv_kernel_dim", kLargestHead);
  model.linear_key_head_dim = values.size("linear_key_head_dim", kLargestHead);
  model.linear_value_head_dim = values.size("linear_value_head_dim", kLargestHead);
  model.linear_num_key_heads = values.size("linear_num_key_heads", kMostHeads);
  model.linear_num_value_heads = values.size("linear_num_value_heads", kMostHeads);
}

void read_layers_ahead(ShapeValues& values, const char* key, ModelConfig& model) {
  const std::int64_t layers = values.count_or(key, 0, kMostLayersAhead);
  if (layers > 0) model.mtp_num_layers = layers;
}

void read_qwen3_next(ShapeValues& values, ModelConfig& model) {
  model.rotary_percent = 0.25;
  read_llama(values, model);
  model.qk_layernorm = QkNorm::Head;
  model.layernorm_zero_centered_gamma = true;
  model.attention_output_gate = values.flag_or("attn_output_gate", true);
  read_delta_nets(values, model);
  read_qwen_experts(values, model);
  model.moe_router_norm_topk_prob = values.flag_or("norm_topk_prob", true);
  read_layers_ahead(values, "num_nextn_predict_layers", model);
}

void read_qwen3_5_moe(ShapeValues& values, ModelConfig& model) {
  read_qwen3_next(values, model);
  model.moe_router_norm_topk_prob = true;
  read_layers_ahead(values, "mtp_num_hidden_layers", model);
}

void read_gpt_oss(ShapeValues& values, ModelConfig& model) {
  read_shape_heads(values, model);
  read_shape_rope(values, model);
  read_window(values, model);
  if (!values.flag_or("attention_bias", true)) {
    throw_wrong_value(*values.find("attention_bias"),
                      "attention_bias",
                      values.file(),
                      "true: every linear layer of the family has biases");
  }
  model.add_bias_linear = true;
  model.softmax_type = config::SoftmaxType::Learnable;
  model.activation_func = config::ActivationFunc::QuickGelu;
  model.activation_func_clamp_value = values.number_or("swiglu_limit", 7, {0, 1e6});
  model.glu_linear_offset = 1;
  set_experts(values, "num_local_experts", "intermediate_size", model);
  values.note("experts_per_token");
  values.note("initial_context_length");
}

void set_sigmoid_router(ModelConfig& model) {
  model.moe_router_score_function = ScoreFunction::Sigmoid;
  model.moe_router_enable_expert_bias = true;
}

// Layers before `first` are dense.
void set_dense_in_front(std::int64_t first, ModelConfig& model) {
  if (first == 0) return;
  if (first == model.num_layers) {
    model.num_moe_experts = std::nullopt;
    return;
  }
  model.moe_layer_freq.assign(static_cast<std::size_t>(model.num_layers), 1);
  std::fill_n(model.moe_layer_freq.begin(), first, 0);
}

// Reads "dense" or "sparse" per layer, which replaces first_k_dense_replace.
void read_layer_kinds(ShapeValues& values, ModelConfig& model) {
  const StrictJson* kinds = values.find("mlp_layer_types");
  if (kinds == nullptr) {
    set_dense_in_front(values.count_or("first_k_dense_replace", 0, model.num_layers), model);
    return;
  }
  if (!kinds->is_array() || std::ssize(*kinds) != model.num_layers) {
    throw_wrong_value(*kinds,
                      "mlp_layer_types",
                      values.file(),
                      text("a word for each of {} layers", model.num_layers));
  }
  std::vector<std::int64_t> moe;
  for (const StrictJson& kind : *kinds) moe.push_back(kind == "dense" ? 0 : 1);
  if (std::ranges::count(moe, 0) > 0) model.moe_layer_freq = std::move(moe);
  values.note("first_k_dense_replace");
}

// Reads DeepSeek-V3 style experts: sigmoid scores, a bias per expert, shared experts, leading dense
// layers.
void read_biased_experts(ShapeValues& values, ModelConfig& model) {
  set_experts(values, "n_routed_experts", "moe_intermediate_size", model);
  set_sigmoid_router(model);
  const double scaling = values.number_or("routed_scaling_factor", 1, {1e-6, 1e6});
  if (scaling != 1) model.moe_router_topk_scaling_factor = scaling;
  const std::int64_t shared = values.count_or("n_shared_experts", 0, 1024);
  if (shared > 0) model.moe_shared_expert_intermediate_size = shared * model.expert_width();
  const std::int64_t groups = values.size_or("n_group", 1, kMostExperts);
  const std::int64_t chosen = values.size_or("topk_group", groups, kMostExperts);
  if (groups > 1) {
    model.moe_router_num_groups = groups;
    model.moe_router_group_topk = chosen;
  }
  for (const char* key : {"norm_topk_prob", "scoring_func", "topk_method"}) values.note(key);
  read_layer_kinds(values, model);
  read_layers_ahead(values, "num_nextn_predict_layers", model);
}

void read_glm4_moe(ShapeValues& values, ModelConfig& model) {
  model.rotary_percent = 0.5;
  read_dense(values, model);
  model.add_qkv_bias = values.flag_or("attention_bias", false);
  if (values.flag_or("use_qk_norm", false)) model.qk_layernorm = QkNorm::Head;
  read_biased_experts(values, model);
}

void read_dots1(ShapeValues& values, ModelConfig& model) {
  read_qwen3(values, model);
  read_biased_experts(values, model);
}

void read_glm4_moe_lite(ShapeValues& values, ModelConfig& model) {
  values.expect_off("attention_bias", "false: biases of compressed queries are not counted");
  read_shape_rope(values, model);
  model.rotary_percent = 1;
  model.num_attention_heads = values.size("num_attention_heads", kMostHeads);
  for (const char* key : {"q_lora_rank",
                          "kv_lora_rank",
                          "qk_nope_head_dim",
                          "qk_rope_head_dim",
                          "qk_head_dim",
                          "v_head_dim",
                          "head_dim",
                          "num_key_value_heads",
                          "rope_interleave"}) {
    values.note(key);
  }
  read_latent_attention(values.values(), Family::DeepseekV3, model);
  read_biased_experts(values, model);
}

void read_minimax_m2(ShapeValues& values, ModelConfig& model) {
  read_llama(values, model);
  if (values.flag_or("use_qk_norm", true)) model.qk_layernorm = QkNorm::Projection;
  values.note("qk_norm_type");
  const std::int64_t turned = values.size_or("rotary_dim", model.head_dim(), kLargestHead);
  model.rotary_percent = static_cast<double>(turned) / static_cast<double>(model.head_dim());
  set_experts(values, "num_local_experts", "intermediate_size", model);
  set_sigmoid_router(model);
  model.moe_router_enable_expert_bias = values.flag_or("use_routing_bias", true);
  for (const char* key : {"scoring_func", "attn_type_list", "mtp_transformer_layers"}) {
    values.note(key);
  }
  const std::int64_t ahead = values.count_or("num_mtp_modules", 0, kMostLayersAhead);
  if (values.flag_or("use_mtp", false) && ahead > 0) {
    values.remarks.push_back(
        text("{} for tokens further ahead (MTP), whose shape the file does not give",
             base::counted(ahead, "module")));
  }
}

constexpr std::array kShapeFamilies = std::to_array<ShapeFamily>({
    {"llama", read_llama},
    {"mistral", read_mistral},
    {"qwen2", read_qwen2},
    {"qwen3", read_qwen3},
    {"qwen2_moe", read_qwen2_moe},
    {"qwen3_next", read_qwen3_next},
    {"qwen3_5_moe", read_qwen3_5_moe},
    {"qwen3_5_moe_text", read_qwen3_5_moe},
    {"gpt_oss", read_gpt_oss},
    {"glm4_moe", read_glm4_moe},
    {"glm4_moe_lite", read_glm4_moe_lite},
    {"dots1", read_dots1},
    {"minimax_m2", read_minimax_m2},
});

}  // namespace

std::span<const ShapeFamily> shape_families() { return kShapeFamilies; }

}  // namespace weft::checkpoint
