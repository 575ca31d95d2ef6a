// Checkpoint from which a run resumes.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "weft/checkpoint/manifest.h"
#include "weft/train/saves/state_list.h"

namespace weft::train {

// Content taken from a checkpoint: everything, everything but the seed (checkpoint.load_rng=false),
// or the weights for a new run (checkpoint.finetune).
enum class Loads { Everything, AllButSeed, Weights };

// Optimizer of a resumed run: the checkpoint's, or a new one (checkpoint.load_optim=false) with
// zero moments and a restarted learning rate.
enum class OptimizerFrom { Checkpoint, Nothing };

// Checkpoint from which a run resumes.
struct Resumption {
  std::filesystem::path folder;  // folder of a step
  std::string note;              // see checkpoint::Found
  checkpoint::Manifest manifest;
  Loads loads = Loads::Everything;
  OptimizerFrom optimizer = OptimizerFrom::Checkpoint;
};

// Finds the checkpoint that checkpoint.load names. nullopt: the key is empty, or it names the run's
// own save folder and that has no checkpoint. A finetuning run loads weights from there until its
// first save, then resumes from its own checkpoint. ConfigError if the checkpoint does not fit the
// run.
std::optional<Resumption> find_resumption(const config::Config& config);

// Error text if the run would save over another run's checkpoints without resuming from them;
// otherwise empty.
std::string replacement_text(const config::Config& config,
                             const std::optional<Resumption>& resumed);

// Hugging Face folder of the model that the run continues, from its config or from the config in
// the checkpoint. Empty: none.
std::string continued_folder(const config::Config& config,
                             const std::optional<Resumption>& resumed);

// True if the run that saved the checkpoint read bytes as tokens.
bool has_read_bytes(const Resumption& resumed);

// Log lines about the resumption.
std::string resumption_text(const Resumption& from, const Progress& progress);

}  // namespace weft::train
