// A Hugging Face config.json as a model config, and back. Spellings of old and new Transformers are
// read; a key that changes the computation in a way Weft does not implement is an error, never
// ignored.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/checkpoint/strict_json.h"
#include "weft/config/model_config.h"

namespace weft::checkpoint {

// Model families: what a config.json names as model_type.
enum class Family { Qwen3Moe, Mixtral, Olmoe, DeepseekV3, DeepseekV2 };
inline constexpr std::array kFamilies{Family::Qwen3Moe,
                                      Family::Mixtral,
                                      Family::Olmoe,
                                      Family::DeepseekV3,
                                      Family::DeepseekV2};

// "qwen3_moe" and so on, and back; "kimi_k2" is a DeepSeek-V3 of other sizes.
std::string_view word(Family family);
std::optional<Family> family_of(std::string_view model_type);
std::string family_words();  // all of them, for an error
// With latent attention.
bool is_deepseek(Family family);

struct HuggingFaceConfig {
  Family family = Family::Qwen3Moe;
  // seq_length is the caller's: reading leaves it at its default. Where positions are stretched,
  // writing takes for max_position_embeddings what the stretch reaches.
  config::ModelConfig model;
  // For whoever generates with it; the engine has no use for them.
  std::optional<std::int64_t> bos_token_id;
  std::vector<std::int64_t> eos_token_ids;
  bool use_cache = true;
  // Layers after the last that predict tokens further ahead; their weights are left out.
  std::int64_t layers_ahead = 0;
};

// `text` is the content of `file`. A missing key takes the family's default in Transformers.
// ConfigError names the file, the key, what was expected and what was found. Sizes are bounded, so
// that no product of them overflows; whether they fit each other is for the config's rules to say.
HuggingFaceConfig parse_huggingface_config(std::string_view text, const std::string& file);
// The same of a parsed file.
HuggingFaceConfig read_huggingface(const StrictJson& config, const std::string& file);

// The content of a config.json that Transformers 4.51 and later open. ConfigError, with every
// reason, where the family cannot say what the model computes.
std::string huggingface_config_text(const HuggingFaceConfig& config);

}  // namespace weft::checkpoint
