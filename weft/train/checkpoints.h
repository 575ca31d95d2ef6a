// Checkpoints of a run (docs/checkpoints.md): saved by all ranks, loaded under any layout.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "weft/checkpoint/manifest.h"
#include "weft/train/state_list.h"

namespace weft::train {

// A checkpoint to go on from.
struct Resumption {
  std::filesystem::path folder;  // of a step
  std::string note;              // see checkpoint::Found
  checkpoint::Manifest manifest;
};

// What checkpoint.load names; none where it is empty, or where it is the folder that the run saves
// to and nothing is there yet. ConfigError where the checkpoint does not fit the run.
std::optional<Resumption> find_resumption(const config::Config& config);

// Every rank calls it, between steps.
void load_checkpoint(Engine& engine, const Progress& progress, const Resumption& from);

// Every rank calls it, between steps. What fails is the save and not the run: rank 0 gets the
// reason, and the checkpoints before it stay as they are.
std::optional<std::string> save_checkpoint(Engine& engine, const Progress& progress);

}  // namespace weft::train
