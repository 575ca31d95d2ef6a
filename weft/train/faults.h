// What a run does about steps that are not finite, and about checkpoints.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "weft/base/descriptor.h"
#include "weft/train/checkpoints.h"
#include "weft/train/engine.h"

namespace weft::train {

struct Attempt {
  StepTotals totals;
  std::string note;      // where it was not finite at first, or differs: what came of it
  bool differs = false;  // computed twice, it gave two results
};

// Runs a training step; `progress` stands before it. One that is not finite has changed nothing,
// and where rerun_state_machine.rerun_mode says so it is run again on the same data: what is finite
// then was an error of the machine. Where it says report_stats, each step is computed once more
// before it is taken. Every rank calls it, and gets the same.
Attempt attempt_step(Engine& engine,
                     const Progress& progress,
                     const StepInput& input,
                     exec::Tracing tracing);

// Whether the batch at this place of the data is one that rerun_state_machine.error_injection_rate
// makes fail. The place decides, not the step: who goes back and on behind it does not meet it
// again.
bool is_made_to_fail(const config::Config& config, const Progress& progress);

// The lock of the folder that the run saves to. Waits a little for another run's end, and says so.
base::Descriptor take_folder(const std::filesystem::path& folder,
                             const std::function<void(const std::string&)>& log,
                             const std::atomic<bool>* stop);

// Whether checkpoint.load still leads to the checkpoint that was chosen, as rank 0 sees it. Every
// rank calls it.
bool is_chosen_still(Engine& engine, const std::optional<Resumption>& chosen);

// Processes have each looked for the checkpoint to go on from: SystemError where they do not agree.
// Every rank calls it.
void require_one_checkpoint(Engine& engine, const std::optional<Resumption>& found);

// The state of a checkpoint, as much of it as `from` says, and the data behind the batch at which
// `progress` stands. Every rank calls it, between steps, with the same folder.
void go_back(Engine& engine, Progress& progress, Resumption from);

}  // namespace weft::train
