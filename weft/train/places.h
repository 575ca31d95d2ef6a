// Output folders of a run, and their existing content.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "weft/base/files/overwrite.h"
#include "weft/checkpoint/huggingface/huggingface.h"
#include "weft/config/config.h"
#include "weft/train/saves/checkpoints.h"

namespace weft::train {

// True if the checkpoint to resume from has all steps: nothing is left to do.
bool checkpoint_has_all_steps(const config::Config& config,
                              const std::optional<Resumption>& resumed);

// ConfigError for each key whose output folder is a file or lies below a file.
void require_folders(const config::Config& config);

// Existing output of another run: in the run folder, the checkpoint folder or the folder of
// checkpoint.save_hf. Each complaint names the fix. With Overwrite::Yes only a checkpoint.save_hf
// that cannot be replaced is a complaint. A run with all steps done has no complaint.
std::vector<std::string> place_complaints(const config::Config& config,
                                          const std::optional<Resumption>& resumed,
                                          base::Overwrite overwrite);

// ConfigError with these complaints. SystemError if the folder of checkpoint.save_hf cannot be made
// or has too little space for `written`. Call before weights are read, not after hours of training.
void require_places(const config::Config& config,
                    const std::optional<Resumption>& resumed,
                    const std::optional<checkpoint::HuggingFaceConfig>& written,
                    base::Overwrite overwrite);

// Early variant, before any rank starts. It does nothing if ranks are processes: another process
// may have made the folders already. It also does nothing if the run may resume in a folder that
// another run is still using.
void require_places_at_start(const config::Config& config,
                             const std::optional<Resumption>& resumed,
                             const std::optional<checkpoint::HuggingFaceConfig>& written,
                             base::Overwrite overwrite);

// Removes old checkpoints that a killed run left behind. It acts if this run resumes from its own
// folder and has nothing left to save. `log` receives a line if they cannot be removed.
void remove_leftovers(const config::Config& config,
                      const std::optional<Resumption>& resumed,
                      const std::function<void(const std::string& line)>& log);

}  // namespace weft::train
