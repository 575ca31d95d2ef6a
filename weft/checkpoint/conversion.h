// Weights from checkpoints to Hugging Face folders and back, on the host alone. A few buffers are
// in memory at a time, whatever the size of the model.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

#include "weft/checkpoint/huggingface.h"
#include "weft/checkpoint/manifest.h"

namespace weft::checkpoint {

// Told of the bytes that are written, now and then. What it throws ends the conversion, and
// nothing of it stays.
using Written = std::function<void(std::uint64_t bytes)>;

// The folder of a step and what it holds.
struct StoredCheckpoint {
  std::filesystem::path folder;
  Manifest manifest;
};

// What of a checkpoint becomes weights: what the run computed with, or the fp32 weights that its
// optimizer keeps beside those of fewer bits.
enum class WeightsFrom { Weights, Masters };

// ConfigError with every tensor that the model has and the checkpoint lacks or has otherwise.
void require_weights(const StoredCheckpoint& from,
                     const config::ModelConfig& model,
                     WeightsFrom source);

// Makes the folder `out` (config.json, model.safetensors) under another name, and renames it when
// it is whole. `config` says the family and what the model is; its params_dtype is what is
// written. ConfigError where `out` is there already.
void convert_to_huggingface(const StoredCheckpoint& from,
                            WeightsFrom source,
                            const HuggingFaceConfig& config,
                            const std::filesystem::path& out,
                            const Written& written);

// Makes the folder `out`, as checkpoint.save does: one checkpoint of step 0 that has weights and
// nothing else. `config` is the YAML that its manifest has. Weights are bf16 where the folder's
// are, all of them, and fp32 otherwise. Returns the manifest.
Manifest convert_to_checkpoint(const HuggingFaceModel& from,
                               const std::string& config,
                               const std::filesystem::path& out,
                               const Written& written);

}  // namespace weft::checkpoint
