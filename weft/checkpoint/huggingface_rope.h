// Rotary embeddings in a config.json: rope_theta at the top, and one object that is called
// rope_parameters (new) or rope_scaling (old).
#pragma once

#include "weft/base/json.h"
#include "weft/checkpoint/huggingface_config.h"
#include "weft/checkpoint/huggingface_values.h"

namespace weft::checkpoint {

// Sets the model's base and, for families that stretch positions, YaRN's numbers.
// `max_position_embeddings` is what a stretch starts from where the file does not say.
void read_rope(const HuggingFaceValues& values,
               Family family,
               double default_theta,
               std::int64_t max_position_embeddings,
               config::ModelConfig& model);

// The positions that YaRN reaches; null where nothing is stretched. A file must say this number as
// max_position_embeddings: Transformers 4 takes its ratio to the positions before the stretch for
// the factor.
std::optional<std::int64_t> stretched_positions(const config::ModelConfig& model);
// Whether that number says the factor exactly, and a reader takes it.
bool is_whole_stretch(const config::ModelConfig& model);

// rope_theta and rope_scaling, as Transformers 4 spells them.
void write_rope(const config::ModelConfig& model, base::Json& json);

}  // namespace weft::checkpoint
