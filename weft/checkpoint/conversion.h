// Weights from checkpoints to Hugging Face folders and back, on the host alone. A few buffers are
// in memory at a time, whatever the size of the model.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

#include "weft/base/overwrite.h"
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

// What a conversion makes: the folder `path`, under another name that changes when it is whole.
// ConfigError where it is there already and may not be replaced.
struct Target {
  Target(const std::filesystem::path& the_path,
         base::Overwrite may_replace = base::Overwrite::No,
         std::filesystem::path the_text_from = {})
      : path(the_path), overwrite(may_replace), text_from(std::move(the_text_from)) {}

  std::filesystem::path path;
  base::Overwrite overwrite;
  std::filesystem::path text_from;  // a folder whose tokenizer is copied; empty: none
};

// config.json and weights. `config` says the family and what the model is; its params_dtype is what
// is written.
void convert_to_huggingface(const StoredCheckpoint& from,
                            WeightsFrom source,
                            const HuggingFaceConfig& config,
                            const Target& out,
                            const Written& written);

// A folder as checkpoint.save makes it: one checkpoint of step 0 that has weights and nothing else.
// `config` is the YAML that its manifest has. Weights are bf16 where the folder's are, all of them,
// and fp32 otherwise. Returns the manifest.
Manifest convert_to_checkpoint(const HuggingFaceModel& from,
                               const std::string& config,
                               const Target& out,
                               const Written& written);

}  // namespace weft::checkpoint
