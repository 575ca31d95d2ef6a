// Conversion of weights between checkpoints and Hugging Face folders, on the host alone. Memory
// holds a few buffers, independent of the model's size.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

#include "weft/base/files/overwrite.h"
#include "weft/checkpoint/huggingface/huggingface.h"
#include "weft/checkpoint/manifest.h"

namespace weft::checkpoint {

// Progress callback with the written bytes. An exception from it cancels the conversion, which
// leaves nothing behind.
using Written = std::function<void(std::uint64_t bytes)>;

// Folder of a step with its manifest.
struct StoredCheckpoint {
  std::filesystem::path folder;
  Manifest manifest;
};

// Source of the weights: the weights of the run, or the fp32 masters of its optimizer.
enum class WeightsFrom { Weights, Masters };

// ConfigError with every tensor that the model has and the checkpoint lacks or holds in another
// shape.
void require_weights(const StoredCheckpoint& from,
                     const config::ModelConfig& model,
                     WeightsFrom source);

// Output folder `path`. It has another name until complete. ConfigError if it exists and must not
// be replaced.
struct Target {
  Target(const std::filesystem::path& the_path,
         base::Overwrite may_replace = base::Overwrite::No,
         std::filesystem::path the_text_from = {})
      : path(the_path), overwrite(may_replace), text_from(std::move(the_text_from)) {}

  std::filesystem::path path;
  base::Overwrite overwrite;
  std::filesystem::path text_from;  // folder with the tokenizer to copy; empty: none
};

// Writes config.json and weights. `config` gives the family and the model; its params_dtype is the
// dtype of the files.
void convert_to_huggingface(const StoredCheckpoint& from,
                            WeightsFrom source,
                            const HuggingFaceConfig& config,
                            const Target& out,
                            const Written& written);

// Writes a folder like checkpoint.save: one checkpoint of step 0 with weights only. `config`: YAML
// for the manifest. Weights are bf16 if all of the folder's are, otherwise fp32. Returns the
// manifest.
Manifest convert_to_checkpoint(const HuggingFaceModel& from,
                               const std::string& config,
                               const Target& out,
                               const Written& written);

}  // namespace weft::checkpoint
