// The parts of a save, whoever runs them and when: each rank writes its shard, then rank 0 makes a
// checkpoint of them. No part talks to other ranks.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "weft/base/error.h"
#include "weft/checkpoint/shard.h"
#include "weft/train/save_talk.h"
#include "weft/train/state_list.h"

namespace weft::train {

// What went wrong with the disk; empty: nothing.
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

// Those of a state list that hold something.
std::vector<checkpoint::StateEntry> stored_entries(std::vector<checkpoint::StateEntry> entries);

// Of the state, what this rank writes. Every rank calls it.
std::vector<checkpoint::StateEntry> own_entries(Engine& engine,
                                                const Progress& progress,
                                                SaveTalk& talk);

// Which checkpoint of which run.
struct SavePlace {
  SavePlace(const Engine& engine, const Progress& progress);

  const config::Config& config;
  const grid::Grid& grid;
  std::filesystem::path save;  // the folder of the run's checkpoints
  std::int64_t step = 0, samples = 0;
  std::optional<std::uint32_t> replaced;  // checksum of the manifest that was there before

  std::filesystem::path folder() const;  // of the step
  bool is_written() const;               // whether another manifest is there now
};

// Rank 0, before all others: a folder to write to. Why there is none; empty: there is one.
std::string make_room(const SavePlace& place);

// A rank's file; what the rank tells rank 0 of it.
std::string write_part(const SavePlace& place,
                       int rank,
                       std::span<const checkpoint::StateEntry> entries,
                       const checkpoint::ReadBlock& read);

// Rank 0, when all files are there, from what each rank told: manifest and tracker; old checkpoints
// go. The first failure, or none; where there is one, what was written goes.
std::string finish_save(const SavePlace& place, const std::vector<std::string>& told);

// What the user is told of it.
std::string failure_text(const SavePlace& place, const std::string& failure);

}  // namespace weft::train
