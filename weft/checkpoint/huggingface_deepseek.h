// What config.json says of a DeepSeek model (V3, and with it Kimi-K2 and Moonlight; V2): latent
// attention, dense layers first, groups of experts, shared experts.
#pragma once

#include <string>
#include <vector>

#include "weft/base/json.h"
#include "weft/checkpoint/huggingface_config.h"
#include "weft/checkpoint/huggingface_values.h"

namespace weft::checkpoint {

void read_latent_attention(const HuggingFaceValues& values,
                           Family family,
                           config::ModelConfig& model);
// The layers, their number of experts and the choice among them. Expects num_layers and
// num_moe_experts to be set.
void read_deepseek_experts(const HuggingFaceValues& values,
                           Family family,
                           config::ModelConfig& model);

// Why a config.json of the family cannot say what the model computes, as "KEY=VALUE: ..."; empty
// where it can.
struct Inexpressible {
  std::string_view key;
  std::string value;
  std::string needed;
};
std::vector<Inexpressible> not_deepseek(const config::ModelConfig& model, Family family);
void write_deepseek(const config::ModelConfig& model, Family family, base::Json& json);

}  // namespace weft::checkpoint
