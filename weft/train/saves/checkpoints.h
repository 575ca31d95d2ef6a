// Checkpoints of a run (docs/checkpoints.md): saved by all ranks, loaded under any layout.
#pragma once

#include <optional>
#include <string>

#include "weft/train/saves/resumption.h"
#include "weft/train/saves/state_list.h"

namespace weft::train {

// Every rank calls it, between steps.
void load_checkpoint(Engine& engine, Progress& progress, const Resumption& from);

// Every rank calls it, between steps. A failure ends the save, not the run: rank 0 gets the reason,
// and earlier checkpoints stay intact.
std::optional<std::string> save_checkpoint(Engine& engine, const Progress& progress);

}  // namespace weft::train
