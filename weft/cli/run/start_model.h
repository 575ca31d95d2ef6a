// Model of a folder to start from, or of a checkpoint to resume from.
#pragma once

#include <string>
#include <vector>

#include "weft/checkpoint/huggingface/huggingface.h"
#include "weft/words/resolution.h"

namespace weft::cli {

// Config of a run, and the keys set by its starting point.
struct StartedRun {
  config::Config config;
  std::vector<config::Finding> automatic;
};

// Config with the model of checkpoint.pretrained_checkpoint, if set, and defaults for continuing it
// (train::set_continuing). Otherwise, if checkpoint.load names a checkpoint and there is no recipe,
// with that run's model, data and batches. ConfigError if the words of `run` ask for another model.
StartedRun started(const words::Resolution& run, const config::Config& config);
// The config alone.
config::Config with_start(const words::Resolution& run, const config::Config& config);

// Name of a run: its recipe, "megatron-line" for a line of Megatron-LM, its start folder, or
// "defaults".
std::string name_of_run(const words::Resolution& run, const config::Config& config);

// Warns of unused weights in the folder.
void warn_of_weights(const checkpoint::HuggingFaceModel& model);

}  // namespace weft::cli
