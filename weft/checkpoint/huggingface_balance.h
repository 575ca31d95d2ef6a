// The coefficient of the auxiliary balancing loss in a config.json. Transformers adds that loss
// only where a model returns its routers' logits, and DeepSeek's keys are of DeepSeek's own
// training: a run that begins with the folder does not take it over, and what is written again has
// it.
#pragma once

#include "weft/base/json.h"
#include "weft/checkpoint/huggingface_config.h"
#include "weft/checkpoint/huggingface_values.h"

namespace weft::checkpoint {

void read_balance(const HuggingFaceValues& keys, Family family, config::ModelConfig& model);

void write_balance(const config::ModelConfig& model, Family family, base::Json& json);

}  // namespace weft::checkpoint
