// The model of a folder to start from, or of a checkpoint to go on from.
#pragma once

#include <string>
#include <vector>

#include "weft/checkpoint/huggingface/huggingface.h"
#include "weft/words/resolution.h"

namespace weft::cli {

// A run's config, and what was set beside the words because of where it starts from.
struct StartedRun {
  config::Config config;
  std::vector<config::Finding> automatic;
};

// `config` with the model of checkpoint.pretrained_checkpoint, where it names a folder, and what
// suits a run that continues it (train::set_continuing). Else, where checkpoint.load names a
// checkpoint and no recipe is given, with the model, data and batches of the run that saved it.
// ConfigError where the words of `run` ask for another model.
StartedRun started(const words::Resolution& run, const config::Config& config);
// Its config.
config::Config with_start(const words::Resolution& run, const config::Config& config);

// What a run is called: by its recipe, or by the folder that it starts from.
std::string name_of_run(const words::Resolution& run, const config::Config& config);

// Warns of weights that the folder has and nothing computes.
void warn_of_weights(const checkpoint::HuggingFaceModel& model);

}  // namespace weft::cli
