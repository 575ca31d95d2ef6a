// Coefficient of the auxiliary balancing loss in a config.json. Transformers adds that loss only if
// a model returns its router logits, and DeepSeek's keys describe DeepSeek's own training. A run
// that starts from the folder therefore ignores the coefficient; a written config.json keeps it.
#pragma once

#include "weft/base/json.h"
#include "weft/checkpoint/huggingface/huggingface_config.h"
#include "weft/checkpoint/huggingface/huggingface_values.h"

namespace weft::checkpoint {

void read_balance(const HuggingFaceValues& keys, Family family, config::ModelConfig& model);

void write_balance(const config::ModelConfig& model, Family family, base::Json& json);

}  // namespace weft::checkpoint
