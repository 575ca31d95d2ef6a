// The shapes of the folder that a run starts from, for commands that compute nothing: config.json
// is enough, and more families are known than the engine computes.
#pragma once

#include <vector>

#include "weft/checkpoint/huggingface/huggingface_shapes.h"
#include "weft/rules/missing.h"
#include "weft/words/resolution.h"

namespace weft::cli {

struct StartShapes {
  config::Config config;
  std::vector<config::Finding> automatic;  // what was set beside the words (StartedRun)
  std::vector<std::string> remarks;        // to warn of
  std::vector<rules::Missing> missing;     // why weights of the folder are not read by this build
};

// As started(): `run.config` with the shapes of checkpoint.pretrained_checkpoint, where it names a
// folder or a config.json, and what suits a run that continues it. ConfigError where the words of
// `run` ask for a model too.
StartShapes start_shapes(const words::Resolution& run);

// Whether such a folder decides the key, so that no word can set it.
bool is_decided_by_folder(std::string_view key);

// The same config; warns of the remarks, and says how long its sequences are.
config::Config with_start_shapes(const words::Resolution& run);

}  // namespace weft::cli
