// Every setting that the moves of a tuner can reach together.
#pragma once

#include <vector>

#include "weft/config/config.h"
#include "weft/plan/tuning_moves.h"

namespace weft::plan {

// Whether two configs that rules judged run alike: in every key, but those by which a user asks for
// what ddp.* and optimizer.* then say.
bool is_same_run(config::Config one, config::Config other);

// Both at once.
TuningMove joined(TuningMove move, const TuningMove& other);

struct GridSetting {
  TuningMove move;        // all keys that it sets
  config::Config config;  // not judged
};

// Moves that set the same keys are values of one knob, beside the value that the config has. Of
// settings that the rules make the same thing of there is one; those that they refuse are left out.
std::vector<GridSetting> tuning_grid(const config::Config& config,
                                     const std::vector<TuningMove>& moves);

}  // namespace weft::plan
