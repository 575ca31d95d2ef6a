// Shapes of a run's start folder, for commands that do not compute: config.json suffices, for more
// families than the engine computes.
#pragma once

#include <vector>

#include "weft/checkpoint/huggingface/huggingface_shapes.h"
#include "weft/rules/missing.h"
#include "weft/words/resolution.h"

namespace weft::cli {

struct StartShapes {
  config::Config config;
  std::vector<config::Finding> automatic;  // keys set by the starting point (StartedRun)
  std::vector<std::string> remarks;        // warnings
  std::vector<rules::Missing> missing;     // reasons why this build cannot read the weights
};

// Like started(): `run.config` with the shapes of checkpoint.pretrained_checkpoint, if set to a
// folder or config.json, and defaults for continuing it. ConfigError if the words of `run` ask for
// a model too.
StartShapes start_shapes(const words::Resolution& run);

// True if the folder decides the key, so that no word can set it.
bool is_decided_by_folder(std::string_view key);

// Config alone; prints the remarks as warnings, and the sequence length.
config::Config with_start_shapes(const words::Resolution& run);

}  // namespace weft::cli
