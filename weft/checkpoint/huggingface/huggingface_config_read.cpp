#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/checkpoint/huggingface/huggingface_balance.h"
#include "weft/checkpoint/huggingface/huggingface_config.h"
#include "weft/checkpoint/huggingface/huggingface_deepseek.h"
#include "weft/checkpoint/huggingface/huggingface_defaults.h"
#include "weft/checkpoint/huggingface/huggingface_keys.h"
#include "weft/checkpoint/huggingface/huggingface_rope.h"
#include "weft/checkpoint/huggingface/huggingface_shapes.h"
#include "weft/checkpoint/huggingface/huggingface_values.h"

namespace weft::checkpoint {
namespace {

using base::text;

std::int64_t expert_count(const HuggingFaceValues& keys, std::int64_t absent) {
  std::optional<std::int64_t> count;
  for (const char* key : {"num_experts", "num_local_experts", "n_routed_experts"}) {
    const StrictJson* value = keys.find(key);
    if (value == nullptr) continue;
    const std::int64_t found = as_integer(*value, key, keys.file(), 0, kMostExperts);
    if (count && *count != found) {
      throw base::ConfigError(
          text("'{}': the number of experts is {}, but {} is {}", keys.file(), *count, key, found));
    }
    count = found;
  }
  return count.value_or(absent);
}

base::DType precision(const HuggingFaceValues& keys) {
  std::optional<base::DType> found;
  for (const char* key : {"dtype", "torch_dtype"}) {
    const StrictJson* value = keys.find_value(key);
    if (value == nullptr) continue;
    const bool is_fp32 = *value == "float32";
    if (!is_fp32 && *value != "bfloat16") {
      throw_wrong_value(*value, key, keys.file(), "\"float32\" or \"bfloat16\"");
    }
    const auto dtype = is_fp32 ? base::DType::F32 : base::DType::BF16;
    if (found && *found != dtype) {
      throw base::ConfigError(text("'{}': dtype and torch_dtype differ", keys.file()));
    }
    found = dtype;
  }
  return found.value_or(base::DType::F32);
}

void read_attention(const HuggingFaceValues& keys,
                    const FamilyDefaults& defaults,
                    config::ModelConfig& model) {
  const std::int64_t heads =
      keys.size("num_attention_heads", defaults.num_attention_heads, kMostHeads);
  model.num_attention_heads = heads;
  const StrictJson* groups = keys.find("num_key_value_heads");
  model.num_query_groups = groups == nullptr   ? defaults.num_key_value_heads.value_or(heads)
                           : groups->is_null() ? heads
                                               : keys.size("num_key_value_heads", 0, kMostHeads);
  if (keys.find_value("head_dim") != nullptr) {
    model.kv_channels = keys.size("head_dim", 0, kLargestHead);
    return;
  }
  if (model.hidden_size % heads != 0) {
    throw base::ConfigError(
        text("'{}': hidden_size {} is not a multiple of num_attention_heads {}; give head_dim",
             keys.file(),
             model.hidden_size,
             heads));
  }
  model.kv_channels = model.hidden_size / heads;
}

// One number per layer, 1 for MoE. Transformers counts decoder_sparse_step from 1.
std::vector<std::int64_t> qwen3_moe_layers(const HuggingFaceValues& keys, std::int64_t layers) {
  const std::int64_t step = keys.size("decoder_sparse_step", 1, kMostLayers);
  std::vector<std::int64_t> moe(static_cast<std::size_t>(layers));
  for (std::int64_t i = 0; i < layers; ++i) {
    moe[static_cast<std::size_t>(i)] = (i + 1) % step == 0 ? 1 : 0;
  }
  const StrictJson* dense = keys.find_value("mlp_only_layers");
  if (dense == nullptr) return moe;
  if (!dense->is_array()) throw_wrong_value(*dense, "mlp_only_layers", keys.file(), "a list");
  for (const StrictJson& layer : *dense) {
    const std::int64_t i = as_integer(layer, "mlp_only_layers", keys.file(), 0, layers - 1);
    moe[static_cast<std::size_t>(i)] = 0;
  }
  return moe;
}

void read_experts(const HuggingFaceValues& keys,
                  Family family,
                  const FamilyDefaults& defaults,
                  config::ModelConfig& model) {
  const std::int64_t experts = expert_count(keys, defaults.num_experts);
  if (experts > 0) model.num_moe_experts = experts;
  if (experts * model.num_layers > kMostLayersTimesExperts) {
    throw base::ConfigError(
        text("'{}': {} layers of {} experts; at most {} experts in all are read",
             keys.file(),
             model.num_layers,
             experts,
             kMostLayersTimesExperts));
  }
  model.moe_router_topk =
      keys.size("num_experts_per_tok", defaults.num_experts_per_tok, kMostExperts);
  if (model.moe_router_topk == 0) {
    throw base::ConfigError(text("'{}': num_experts_per_tok is missing", keys.file()));
  }
  model.moe_router_pre_softmax = true;
  model.moe_router_norm_topk_prob = family == Family::Mixtral || keys.flag("norm_topk_prob");
  model.moe_layer_freq = {1};
  model.moe_ffn_hidden_size = model.ffn_hidden_size;
  if (family == Family::Qwen3Moe || is_deepseek(family)) {
    model.moe_ffn_hidden_size =
        keys.size("moe_intermediate_size", defaults.moe_intermediate_size, kLargestWidth);
  }
  if (family == Family::Qwen3Moe) {
    std::vector<std::int64_t> moe = qwen3_moe_layers(keys, model.num_layers);
    const auto count = std::count(moe.begin(), moe.end(), 1);
    if (count == 0) model.num_moe_experts = std::nullopt;
    if (count != 0 && count != model.num_layers) model.moe_layer_freq = std::move(moe);
  } else if (experts == 0) {
    throw base::ConfigError(
        text("'{}': {} model has experts in every layer; the number of experts is 0",
             keys.file(),
             base::with_article(word(family))));
  } else if (is_deepseek(family)) {
    read_deepseek_experts(keys, family, model);
  }
}

config::QkNorm qk_norm(Family family) {
  switch (family) {
    case Family::Qwen3Moe:
      return config::QkNorm::Head;
    case Family::Mixtral:
      return config::QkNorm::None;
    case Family::Olmoe:
      return config::QkNorm::Projection;
    case Family::DeepseekV3:
    case Family::DeepseekV2:
      return config::QkNorm::None;
  }
  return config::QkNorm::None;
}

Family read_family(const StrictJson& config, const std::string& file) {
  const StrictJson& value = member(config, "model_type", file);
  const std::string& name = as_word(value, "model_type", file);
  const auto family = family_of(name);
  if (family) return *family;
  if (!is_shape_family(name)) throw_wrong_value(value, "model_type", file, family_words());
  throw base::ConfigError(text(
      "'{}': weights of {} are not read yet: weft plan, check and memory know the model by its "
      "shapes; read are those of {}",
      file,
      name,
      family_words()));
}

// Transformers gives the embedding's padding row no gradient; a negative id counts from the end.
std::optional<std::int64_t> pad_token(const HuggingFaceValues& keys,
                                      Family family,
                                      std::int64_t vocabulary) {
  const StrictJson* value = keys.find("pad_token_id");
  if (value == nullptr)
    return family == Family::Olmoe ? std::optional<std::int64_t>(1) : std::nullopt;
  if (value->is_null()) return std::nullopt;
  const std::int64_t id =
      as_integer(*value, "pad_token_id", keys.file(), -vocabulary, vocabulary - 1);
  return id < 0 ? id + vocabulary : id;
}

// Token ids for the begin or end of a text, unused by the engine.
std::int64_t token_id(const HuggingFaceValues& keys, const StrictJson& value, const char* key) {
  return as_integer(value, key, keys.file(), -1, kLargestVocabulary);
}

void read_generation(const HuggingFaceValues& keys, HuggingFaceConfig& read) {
  if (const StrictJson* first = keys.find_value("bos_token_id")) {
    read.bos_token_id = token_id(keys, *first, "bos_token_id");
  }
  if (const StrictJson* last = keys.find_value("eos_token_id")) {
    if (last->is_array()) {
      for (const StrictJson& one : *last) {
        read.eos_token_ids.push_back(token_id(keys, one, "eos_token_id"));
      }
    } else {
      read.eos_token_ids.push_back(token_id(keys, *last, "eos_token_id"));
    }
  }
  if (const StrictJson* cache = keys.find_value("use_cache")) {
    read.use_cache = as_flag(*cache, "use_cache", keys.file());
  }
}

}  // namespace

HuggingFaceConfig parse_huggingface_config(std::string_view content, const std::string& file) {
  return read_huggingface(parse_python_object(content, file), file);
}

HuggingFaceConfig read_huggingface(const StrictJson& config, const std::string& file) {
  const Family family = read_family(config, file);
  std::vector<std::string> complaints = key_complaints(config, family, file);
  if (!complaints.empty()) throw base::ConfigError(std::move(complaints));

  const HuggingFaceValues keys(config, file);
  const FamilyDefaults defaults = defaults_of(family);
  HuggingFaceConfig read{.family = family, .model = {}};
  config::ModelConfig& model = read.model;
  model.num_layers = keys.size("num_hidden_layers", defaults.num_hidden_layers, kMostLayers);
  model.hidden_size = keys.size("hidden_size", defaults.hidden_size, kLargestWidth);
  model.ffn_hidden_size = keys.size("intermediate_size", defaults.intermediate_size, kLargestWidth);
  model.vocab_size = keys.size("vocab_size", defaults.vocab_size, kLargestVocabulary);
  model.pad_token_id = pad_token(keys, family, model.vocab_size);
  model.qk_layernorm = qk_norm(family);
  model.layernorm_epsilon = keys.number("rms_norm_eps", defaults.rms_norm_eps, {0, 1});
  model.share_embeddings_and_output_weights = keys.flag("tie_word_embeddings");
  model.init_method_std = keys.number("initializer_range", 0.02, {0, 100});
  model.params_dtype = precision(keys);
  if (is_deepseek(family)) {
    model.num_attention_heads = defaults.num_attention_heads;
    read_latent_attention(keys, family, model);
  } else {
    read_attention(keys, defaults, model);
  }
  read_experts(keys, family, defaults, model);
  read_balance(keys, family, model);
  const std::int64_t positions =
      keys.size("max_position_embeddings", defaults.max_position_embeddings, kLongestSequence);
  model.max_position_embeddings = positions;
  read_rope(keys, family, defaults.rope_theta, positions, model);
  const StrictJson* ahead = keys.find_value("num_nextn_predict_layers");
  if (is_deepseek(family) && ahead != nullptr) {
    read.layers_ahead = as_integer(*ahead, "num_nextn_predict_layers", file, 0, kMostLayersAhead);
  }
  read_generation(keys, read);
  return read;
}

}  // namespace weft::checkpoint
