// Handling of non-finite steps, and of checkpoints that fail.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "weft/base/files/descriptor.h"
#include "weft/train/engine.h"
#include "weft/train/saves/checkpoints.h"

namespace weft::train {

struct Attempt {
  StepTotals totals;
  std::string note;      // place of the first non-finite value or difference, and the consequence
  bool differs = false;  // true if two computations of the step gave two results
};

// Runs a training step; `progress` is the state before it. A non-finite step changes nothing. With
// rerun_state_machine.rerun_mode it runs again on the same data: a finite second result means a
// machine error. With report_stats each step is computed once more before it is accepted. Every
// rank calls it and gets the same result.
Attempt attempt_step(Engine& engine,
                     const Progress& progress,
                     const StepInput& input,
                     exec::Tracing tracing);

// True if rerun_state_machine.error_injection_rate makes the batch at this data position fail. The
// position decides, not the step: a run that goes back and skips the batch does not meet it again.
bool has_injected_error(const config::Config& config, const Progress& progress);

// Locks the folder that the run saves to. Waits a short time for another run to end, and logs it.
base::Descriptor take_folder(const std::filesystem::path& folder,
                             const std::function<void(const std::string&)>& log,
                             const std::atomic<bool>* stop);

// True if checkpoint.load still leads to the chosen checkpoint, as seen by rank 0. Every rank calls
// it.
bool is_still_newest_choice(Engine& engine, const std::optional<Resumption>& chosen);

// SystemError if the processes found different checkpoints to resume from. Every rank calls it.
void require_one_checkpoint(Engine& engine, const std::optional<Resumption>& found);

// Loads the state of a checkpoint as `from` says, and skips the data up to and including the batch
// at `progress`. Every rank calls it, between steps, with the same folder.
void go_back(Engine& engine, Progress& progress, Resumption from);

}  // namespace weft::train
