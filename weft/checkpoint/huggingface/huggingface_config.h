// Conversion between a Hugging Face config.json and a model config. Reads the spellings of old and
// new Transformers. A key that changes the computation in an unimplemented way is an error.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/checkpoint/tensors/strict_json.h"
#include "weft/config/model_config.h"

namespace weft::checkpoint {

// Model family, the model_type of config.json.
enum class Family { Qwen3Moe, Mixtral, Olmoe, DeepseekV3, DeepseekV2 };
inline constexpr std::array kFamilies{Family::Qwen3Moe,
                                      Family::Mixtral,
                                      Family::Olmoe,
                                      Family::DeepseekV3,
                                      Family::DeepseekV2};

// "qwen3_moe" and so on, and the inverse; "kimi_k2" is a DeepSeek-V3 of other sizes.
std::string_view word(Family family);
std::optional<Family> family_of(std::string_view model_type);
std::string family_words();  // all families, for an error
// True for families with latent attention.
bool is_deepseek(Family family);

struct HuggingFaceConfig {
  Family family = Family::Qwen3Moe;
  // seq_length keeps its default when read; the caller sets it. With scaled positions the written
  // max_position_embeddings is the scaled length.
  config::ModelConfig model;
  // For text generation; unused by the engine.
  std::optional<std::int64_t> bos_token_id;
  std::vector<std::int64_t> eos_token_ids;
  bool use_cache = true;
  // Multi-token prediction layers after the last layer; their weights are ignored.
  std::int64_t layers_ahead = 0;
};

// Parses `text`, the content of `file`. A missing key has the family's default in Transformers.
// ConfigError with file, key, expected and found value. Sizes are bounded, so that no product
// overflows; the config rules check their combination.
HuggingFaceConfig parse_huggingface_config(std::string_view text, const std::string& file);
// Variant for parsed JSON.
HuggingFaceConfig read_huggingface(const StrictJson& config, const std::string& file);

// Content of a config.json for Transformers 4.51 and later. ConfigError with every reason if the
// family cannot express the model.
std::string huggingface_config_text(const HuggingFaceConfig& config);

}  // namespace weft::checkpoint
