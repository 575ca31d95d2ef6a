// The folders of a run's checkpoints: iter_0000010/ for each step that was saved, and beside them
// the tracker, which names the last.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/descriptor.h"

namespace weft::checkpoint {

inline constexpr const char* kTrackerName = "latest_checkpointed_iteration.txt";

std::filesystem::path step_folder(const std::filesystem::path& save, std::int64_t step);

// Whether a name in the folder of a run's checkpoints is a step's or the tracker's.
bool is_of_checkpoints(std::string_view name);

bool is_whole(const std::filesystem::path& step_folder);

// Of its files; 0 where they cannot be looked at.
std::uint64_t bytes_in(const std::filesystem::path& step_folder);

// The steps that have a folder, ascending; whole or not.
std::vector<std::int64_t> saved_steps(const std::filesystem::path& save);

struct Found {
  std::filesystem::path folder;  // of a step
  std::string note;              // why it is another than the tracker names; empty: it is not
};

// `load` itself where it is a step's folder; else the newest that was finished: the one its tracker
// names, or one that follows it where a save ended between its manifest and the tracker, or where
// the one that the tracker names was never finished the newest before it. None where nothing was
// ever saved; ConfigError where something was and nothing of it is whole. With a step, that one,
// and ConfigError where it is not there.
std::optional<Found> find_checkpoint(const std::filesystem::path& load,
                                     std::optional<std::int64_t> step = std::nullopt);

// How to go on without a step's folder that is damaged, from the newest before it whose manifest
// and sizes are right: the end of an error.
std::string way_back(const std::filesystem::path& step_folder);

// The checksum of the manifest that the tracker names: what the next save follows.
std::optional<std::uint32_t> tracked_checksum(const std::filesystem::path& save);

// Removes shards that the manifest in a step's folder does not name: of a checkpoint that was to
// replace it, or that it replaced.
void remove_strays(const std::filesystem::path& step_folder);

// A folder for a step, in a folder that is there. A whole checkpoint of that step stays one until
// the manifest of the new one takes its place; anything else in it goes.
std::filesystem::path make_step_folder(const std::filesystem::path& save, std::int64_t step);

// What was written of a step that could not be finished, or that is not wanted any more.
void remove_step(const std::filesystem::path& save, std::int64_t step);

// As long as it is open no other run saves there: SystemError where one does. A run that was killed
// holds the lock until the disk has what it was given: the next one waits that long for it.
// `goes_on` is asked again and again meanwhile, and ends it with false.
inline constexpr std::chrono::milliseconds kLockPatience{10'000};
base::Descriptor lock_folder(
    const std::filesystem::path& save,
    std::chrono::milliseconds patience = kLockPatience,
    const std::function<bool()>& goes_on = [] { return true; });

void write_tracker(const std::filesystem::path& save, std::int64_t step);

// Removes checkpoints of earlier steps until `keep`, with that of `newest`, are left, and all of
// them that were never finished. Those of later steps, which another run made, stay.
void remove_old_steps(const std::filesystem::path& save, std::int64_t newest, std::int64_t keep);

}  // namespace weft::checkpoint
