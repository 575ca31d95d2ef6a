// Checkpoints of a run (docs/checkpoints.md): saved by all ranks, loaded under any layout.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "weft/checkpoint/manifest.h"
#include "weft/train/state_list.h"

namespace weft::train {

// What is taken from a checkpoint: all of it, all but the seed (checkpoint.load_rng=false), or the
// weights for a run that begins (checkpoint.finetune).
enum class Loads { Everything, AllButSeed, Weights };

// Of a run that goes on: the checkpoint's, or a new one (checkpoint.load_optim=false), whose
// moments are zero and whose learning rate begins anew.
enum class OptimizerFrom { Checkpoint, Nothing };

// A checkpoint to go on from.
struct Resumption {
  std::filesystem::path folder;  // of a step
  std::string note;              // see checkpoint::Found
  checkpoint::Manifest manifest;
  Loads loads = Loads::Everything;
  OptimizerFrom optimizer = OptimizerFrom::Checkpoint;
};

// What checkpoint.load names; none where it is empty, or where it is the folder that the run saves
// to and nothing is there yet. A finetuning run takes its weights from there until it has saved,
// and then goes on from what it saved. ConfigError where the checkpoint does not fit the run.
std::optional<Resumption> find_resumption(const config::Config& config);

// What is wrong where the run saves where another has saved, and does not go on from there; else
// empty.
std::string replacement_text(const config::Config& config,
                             const std::optional<Resumption>& resumed);

// The Hugging Face folder whose model the run continues: what its config names, or what that of the
// run that saved the checkpoint named. Empty: none.
std::string continued_folder(const config::Config& config,
                             const std::optional<Resumption>& resumed);

// Whether the run that saved the checkpoint read bytes as tokens.
bool has_read_bytes(const Resumption& resumed);

// What the log of a run says of it.
std::string resumption_text(const Resumption& from, const Progress& progress);

// Every rank calls it, between steps.
void load_checkpoint(Engine& engine, Progress& progress, const Resumption& from);

// Every rank calls it, between steps. What fails is the save and not the run: rank 0 gets the
// reason, and the checkpoints before it stay as they are.
std::optional<std::string> save_checkpoint(Engine& engine, const Progress& progress);

}  // namespace weft::train
