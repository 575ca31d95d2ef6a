// DeepSeek keys of config.json (V3, with Kimi-K2 and Moonlight; V2): latent attention, leading
// dense layers, expert groups, shared experts.
#pragma once

#include <string>
#include <vector>

#include "weft/base/json.h"
#include "weft/checkpoint/huggingface/huggingface_config.h"
#include "weft/checkpoint/huggingface/huggingface_values.h"

namespace weft::checkpoint {

void read_latent_attention(const HuggingFaceValues& values,
                           Family family,
                           config::ModelConfig& model);
// Reads layer kinds, expert counts and routing. Requires num_layers and num_moe_experts.
void read_deepseek_experts(const HuggingFaceValues& values,
                           Family family,
                           config::ModelConfig& model);

// Reason why the family's config.json cannot express the model, as "KEY=VALUE: ...". An empty list:
// it can.
struct Inexpressible {
  std::string_view key;
  std::string value;
  std::string needed;
};
std::vector<Inexpressible> not_deepseek(const config::ModelConfig& model, Family family);
void write_deepseek(const config::ModelConfig& model, Family family, base::Json& json);

}  // namespace weft::checkpoint
