// Rotary embeddings in a config.json: rope_theta at the top, and one object rope_parameters (new)
// or rope_scaling (old).
#pragma once

#include "weft/base/json.h"
#include "weft/checkpoint/huggingface/huggingface_config.h"
#include "weft/checkpoint/huggingface/huggingface_values.h"

namespace weft::checkpoint {

// Sets the model's base and, for families with scaled positions, YaRN's parameters.
// `max_position_embeddings`: the original length unless the file has one.
void read_rope(const HuggingFaceValues& values,
               Family family,
               double default_theta,
               std::int64_t max_position_embeddings,
               config::ModelConfig& model);

// Scaled length under YaRN; nullopt: no scaling. A file must have it as max_position_embeddings:
// Transformers 4 divides it by the original length to get the factor.
std::optional<std::int64_t> stretched_positions(const config::ModelConfig& model);
// True if this integer length represents the factor exactly and a reader accepts it.
bool is_whole_stretch(const config::ModelConfig& model);

// Writes rope_theta and rope_scaling in the spelling of Transformers 4.
void write_rope(const config::ModelConfig& model, base::Json& json);

}  // namespace weft::checkpoint
