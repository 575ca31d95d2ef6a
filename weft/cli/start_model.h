// The model of a folder to start from.
#pragma once

#include "weft/checkpoint/huggingface.h"
#include "weft/words/resolution.h"

namespace weft::cli {

// `config` with the model of checkpoint.pretrained_checkpoint, where it names a folder; ConfigError
// where the words of `run` ask for a model too.
config::Config with_start(const words::Resolution& run, const config::Config& config);

// Warns of weights that the folder has and nothing computes.
void warn_of_weights(const checkpoint::HuggingFaceModel& model);

}  // namespace weft::cli
