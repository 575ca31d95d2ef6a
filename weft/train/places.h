// Where a run writes, and what is there already.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "weft/base/overwrite.h"
#include "weft/checkpoint/huggingface.h"
#include "weft/config/config.h"
#include "weft/train/checkpoints.h"

namespace weft::train {

// Whether the checkpoint that the run goes on from has all its steps: there is nothing left to do.
bool has_all_steps(const config::Config& config, const std::optional<Resumption>& resumed);

// What of another run lies where this one would write: a run folder, checkpoints, the folder of
// checkpoint.save_hf. Each complaint names the way out. Empty with Overwrite::Yes but for what is
// no folder, and for a run that is finished.
std::vector<std::string> place_complaints(const config::Config& config,
                                          const std::optional<Resumption>& resumed,
                                          base::Overwrite overwrite);

// ConfigError with them, and SystemError where the folder of checkpoint.save_hf cannot be made or
// has no room for `written`: before weights are read, not after hours of training.
void require_places(const config::Config& config,
                    const std::optional<Resumption>& resumed,
                    const std::optional<checkpoint::HuggingFaceConfig>& written,
                    base::Overwrite overwrite);

// The same before any rank starts, where that can be known: ranks are no processes, of which one
// may have made the folders already, and no other run may be saving to where this one goes on.
void require_places_at_start(const config::Config& config,
                             const std::optional<Resumption>& resumed,
                             const std::optional<checkpoint::HuggingFaceConfig>& written,
                             base::Overwrite overwrite);

// Removes the old checkpoints that a run was killed before it could remove, where this one goes on
// from its own folder and had nothing left to save. `log` is told where they stay.
void remove_leftovers(const config::Config& config,
                      const std::optional<Resumption>& resumed,
                      const std::function<void(const std::string& line)>& log);

}  // namespace weft::train
