// Every combination of a tuner's moves.
#pragma once

#include <vector>

#include "weft/config/config.h"
#include "weft/plan/tuning/tuning_moves.h"

namespace weft::plan {

// True if two judged configs run alike: equal in every key, except keys that only request settings
// of ddp.* and optimizer.*.
bool is_same_run(config::Config one, config::Config other);

// Combines two moves.
TuningMove joined(TuningMove move, const TuningMove& other);

struct GridSetting {
  TuningMove move;        // all keys that it sets
  config::Config config;  // not judged
};

// Grid of settings. Moves that set the same keys are values of one knob, besides the config's own
// value. Settings that the rules resolve equally appear once; refused settings are left out.
std::vector<GridSetting> tuning_grid(const config::Config& config,
                                     const std::vector<TuningMove>& moves);

}  // namespace weft::plan
