#include "weft/checkpoint/huggingface/huggingface_keys.h"

#include <algorithm>
#include <array>
#include <span>

#include "weft/base/text.h"

namespace weft::checkpoint {
namespace {

using base::text;

// Keys that parse_huggingface_config reads for every family.
constexpr std::array<std::string_view, 22> kUsed{"dtype",
                                                 "head_dim",
                                                 "hidden_size",
                                                 "initializer_range",
                                                 "intermediate_size",
                                                 "max_position_embeddings",
                                                 "model_type",
                                                 "num_attention_heads",
                                                 "num_experts",
                                                 "num_experts_per_tok",
                                                 "num_hidden_layers",
                                                 "num_key_value_heads",
                                                 "num_local_experts",
                                                 "pad_token_id",
                                                 "rms_norm_eps",
                                                 "rope_parameters",
                                                 "rope_scaling",
                                                 "rope_theta",
                                                 "router_aux_loss_coef",
                                                 "tie_word_embeddings",
                                                 "torch_dtype",
                                                 "vocab_size"};

constexpr std::array<std::string_view, 4> kUsedByQwen3Moe{"decoder_sparse_step",
                                                          "mlp_only_layers",
                                                          "moe_intermediate_size",
                                                          "norm_topk_prob"};
constexpr std::array<std::string_view, 1> kUsedByOlmoe{"norm_topk_prob"};
constexpr std::array kUsedByDeepseek = std::to_array<std::string_view>({
    "first_k_dense_replace",
    "kv_lora_rank",
    "moe_intermediate_size",
    "n_group",
    "n_routed_experts",
    "n_shared_experts",
    "num_nextn_predict_layers",
    "q_lora_rank",
    "qk_head_dim",
    "qk_nope_head_dim",
    "qk_rope_head_dim",
    "rope_interleave",
    "routed_scaling_factor",
    "topk_group",
    "v_head_dim",
    // DeepSeek's own training, which Transformers does not repeat.
    "aux_loss_alpha",
    "ep_size",
    "seq_aux",
});

// Token ids, text generation and Transformers' own metadata.
constexpr std::array kHarmless = std::to_array<std::string_view>({
    "_attn_implementation",
    "_attn_implementation_autoset",
    "_experts_implementation",
    "_name_or_path",
    "architectures",
    "attn_implementation",
    "bad_words_ids",
    "begin_suppress_tokens",
    "bos_token_id",
    "decoder_start_token_id",
    "diversity_penalty",
    "do_sample",
    "early_stopping",
    "encoder_no_repeat_ngram_size",
    "eos_token_id",
    "exponential_decay_length_penalty",
    "finetuning_task",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "id2label",
    "label2id",
    "length_penalty",
    "max_length",
    "max_window_layers",
    "min_length",
    "name_or_path",
    "no_repeat_ngram_size",
    "num_beam_groups",
    "num_beams",
    "num_labels",
    "num_return_sequences",
    "output_attentions",
    "output_hidden_states",
    "output_scores",
    "prefix",
    "pretraining_tp",
    "problem_type",
    "remove_invalid_values",
    "repetition_penalty",
    "return_dict",
    "return_dict_in_generate",
    "sep_token_id",
    "suppress_tokens",
    "task_specific_params",
    "temperature",
    "tf_legacy_loss",
    "tokenizer_class",
    "top_k",
    "top_p",
    "torchscript",
    "transformers_version",
    "typical_p",
    "use_bfloat16",
    "use_cache",
});

bool is_null(const StrictJson& value, const StrictJson&, Family) { return value.is_null(); }
bool is_off(const StrictJson& value, const StrictJson&, Family) {
  return value.is_null() || value == false;
}
bool is_zero(const StrictJson& value, const StrictJson&, Family) {
  return value.is_null() || value == 0;
}
bool is_one(const StrictJson& value, const StrictJson&, Family) {
  return value.is_null() || value == 1;
}
bool is_silu(const StrictJson& value, const StrictJson&, Family) { return value == "silu"; }

bool is_full_attention(const StrictJson& value, const StrictJson&, Family) {
  return value.is_null() ||
         (value.is_array() && std::all_of(value.begin(), value.end(), [](const StrictJson& type) {
            return type == "full_attention";
          }));
}

// Transformers adds the auxiliary loss to the loss only if it returns the router logits.
bool leaves_loss_alone(const StrictJson& value, const StrictJson& config, Family) {
  return value == false ||
         (value == true && config.value("router_aux_loss_coef", StrictJson()) == 0);
}

// Qwen's key has no effect without use_sliding_window, which its own row restricts to false.
bool is_inactive_window(const StrictJson& value, const StrictJson&, Family family) {
  return value.is_null() || (family == Family::Qwen3Moe && value.is_number_unsigned());
}

// DeepSeek's own code and copies of it compute what the family does.
bool is_deepseek_code(const StrictJson& value, const StrictJson&, Family family) {
  return is_deepseek(family) && value.is_object() &&
         std::all_of(value.begin(), value.end(), [](const StrictJson& code) {
           return code.is_string() && code.get_ref<const std::string&>().find(
                                          "_deepseek.Deepseek") != std::string::npos;
         });
}

// Scores fixed by the family: sigmoid in DeepSeek-V3, softmax in V2.
bool is_their_scores(const StrictJson& value, const StrictJson&, Family family) {
  return value == (family == Family::DeepseekV3 ? "sigmoid" : "softmax") && is_deepseek(family);
}
bool is_their_choice(const StrictJson& value, const StrictJson&, Family family) {
  if (family == Family::DeepseekV3) return value == "noaux_tc";
  return family == Family::DeepseekV2 && (value == "greedy" || value == "group_limited_greedy");
}
bool is_their_norm(const StrictJson& value, const StrictJson& config, Family family) {
  if (family != Family::DeepseekV3) return value.is_null() || value == false;
  // A single chosen expert keeps its score here; renormalised it would be 1.
  return value == (config.value("num_experts_per_tok", StrictJson()) != 1);
}
bool is_every_layer(const StrictJson& value, const StrictJson&, Family family) {
  return is_deepseek(family) && value == 1;
}

struct Constraint {
  std::string_view key;
  bool (*holds)(const StrictJson& value, const StrictJson& config, Family family);
  std::string_view allowed;
};

constexpr std::array kConstraints = std::to_array<Constraint>({
    {"attention_bias", is_off, "false: projections with biases are not implemented"},
    {"attention_dropout", is_zero, "0: dropout is not implemented"},
    {"auto_map", is_deepseek_code, "code of a family that is known: it is not run"},
    {"clip_qkv", is_null, "null: clipping of queries, keys and values is not implemented"},
    {"hidden_act", is_silu, "\"silu\": no other activation is implemented"},
    {"layer_types", is_full_attention, "\"full_attention\" for every layer"},
    {"moe_layer_freq", is_every_layer, "1: every layer after the dense ones has experts"},
    {"norm_topk_prob",
     is_their_norm,
     "true for deepseek_v3 with several experts a token, else false: no other is implemented"},
    {"num_nextn_predict_layers", is_zero, "0: multi-token prediction is not implemented"},
    {"output_router_logits",
     leaves_loss_alone,
     "false (or router_aux_loss_coef 0): Transformers' auxiliary loss is not implemented"},
    {"partial_rotary_factor", is_one, "1: partial rotary embeddings are not implemented"},
    {"quantization_config", is_null, "null: quantized weights are not implemented"},
    {"router_jitter_noise", is_zero, "0: router noise is not implemented"},
    {"scoring_func",
     is_their_scores,
     "\"sigmoid\" for deepseek_v3 and \"softmax\" for deepseek_v2: no other is implemented"},
    {"sliding_window", is_inactive_window, "null: sliding-window attention is not implemented"},
    {"topk_method",
     is_their_choice,
     "\"noaux_tc\" for deepseek_v3, \"greedy\" or \"group_limited_greedy\" for deepseek_v2: no "
     "other is implemented"},
    {"use_sliding_window", is_off, "false: sliding-window attention is not implemented"},
});

bool contains(std::span<const std::string_view> keys, std::string_view key) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

bool is_used(std::string_view key, Family family) {
  if (contains(kUsed, key)) return true;
  switch (family) {
    case Family::Qwen3Moe:
      return contains(kUsedByQwen3Moe, key);
    case Family::Mixtral:
      return false;
    case Family::Olmoe:
      return contains(kUsedByOlmoe, key);
    case Family::DeepseekV3:
    case Family::DeepseekV2:
      return contains(kUsedByDeepseek, key);
  }
  return false;
}

const Constraint* constraint_of(std::string_view key) {
  const auto row = std::ranges::find(kConstraints, key, &Constraint::key);
  return row == kConstraints.end() ? nullptr : &*row;
}

}  // namespace

bool says_nothing(const StrictJson& value) {
  return value.is_null() || value == false || value == 0 || value == "" ||
         (value.is_structured() && value.empty());
}

bool is_harmless_key(std::string_view key) { return contains(kHarmless, key); }

bool is_known_key(std::string_view key, Family family) {
  return is_used(key, family) || contains(kHarmless, key) || constraint_of(key) != nullptr;
}

std::vector<std::string> key_complaints(const StrictJson& config,
                                        Family family,
                                        const std::string& file) {
  std::vector<std::string> complaints;
  for (const auto& entry : config.items()) {
    const std::string_view key = entry.key();
    const StrictJson& value = entry.value();
    if (is_used(key, family) || contains(kHarmless, key)) continue;
    const std::string shown_key = shown(entry.key());
    const Constraint* constraint = constraint_of(key);
    if (constraint == nullptr) {
      if (says_nothing(value)) continue;
      complaints.push_back(
          text("'{}': {} is {}; Weft does not know this key of {} model and will not ignore it: "
               "remove it if it does not change what the model computes",
               file,
               shown_key,
               shown(value),
               base::with_article(word(family))));
    } else if (!constraint->holds(value, config, family)) {
      complaints.push_back(text("'{}': {} is {}; it must be {}",
                                file,
                                shown_key,
                                shown(value),
                                constraint->allowed));
    }
  }
  return complaints;
}

}  // namespace weft::checkpoint
