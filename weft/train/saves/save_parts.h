// Parts of a save, for synchronous and asynchronous callers: each rank writes its shard, then rank
// 0 completes the checkpoint. No part talks to other ranks.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "weft/base/error.h"
#include "weft/checkpoint/shard.h"
#include "weft/train/saves/save_talk.h"
#include "weft/train/saves/state_list.h"

namespace weft::train {

// Disk error of `work` as text; empty: none.
template <typename Work>
std::string failure_of(const Work& work) {
  try {
    work();
    return "";
  } catch (const base::SystemError& error) {
    return error.what();
  } catch (const std::filesystem::filesystem_error& error) {
    return error.what();
  }
}

// Non-empty entries of a state list.
std::vector<checkpoint::StateEntry> stored_entries(std::vector<checkpoint::StateEntry> entries);

// Entries of the state that this rank writes. Every rank calls it.
std::vector<checkpoint::StateEntry> own_entries(Engine& engine,
                                                const Progress& progress,
                                                SaveTalk& talk);

// Target of a save: step and folders of a run.
struct SavePlace {
  SavePlace(const Engine& engine, const Progress& progress);

  const config::Config& config;
  const grid::Grid& grid;
  std::filesystem::path save;  // folder of the run's checkpoints
  std::int64_t step = 0, samples = 0;
  std::optional<std::uint32_t> replaced;  // checksum of the manifest that was there before

  std::filesystem::path folder() const;  // folder of the step
  bool is_written() const;               // true if another manifest is there now
};

// Makes the folder. Rank 0 calls it before all others. Returns the error; empty: none.
std::string make_room(const SavePlace& place);

// Writes a rank's shard; returns its message to rank 0.
std::string write_part(const SavePlace& place,
                       int rank,
                       std::span<const checkpoint::StateEntry> entries,
                       const checkpoint::ReadBlock& read);

// Completes the save on rank 0 after all shards, from every rank's message: manifest and tracker;
// removes old checkpoints. Returns the first failure; empty: none. A failed save removes its files.
std::string finish_save(const SavePlace& place, const std::vector<std::string>& told);

// User message about a failed save.
std::string failure_text(const SavePlace& place, const std::string& failure);

}  // namespace weft::train
