// Weights from and to Hugging Face folders, under any layout.
#pragma once

#include <filesystem>

#include "weft/checkpoint/huggingface.h"
#include "weft/train/engine.h"

namespace weft::train {

// `config` with the model a folder holds: everything that decides what is computed comes from the
// folder; layout, sequence length, dtype, dispatcher and auxiliary losses stay.
config::Config with_model_of(const config::Config& config,
                             const checkpoint::HuggingFaceModel& model);

// Each rank reads what it owns.
void load_weights(Engine& engine, const checkpoint::HuggingFaceModel& model);

// Rank 0 writes, fetching experts from the ranks that own them. Every rank calls it.
void save_weights(Engine& engine,
                  const std::filesystem::path& folder,
                  const checkpoint::HuggingFaceConfig& config);

// The family whose config.json can say what the model computes; ConfigError where there is none.
checkpoint::HuggingFaceConfig huggingface_config_for(const config::ModelConfig& model);

}  // namespace weft::train
