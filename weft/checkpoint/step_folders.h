// Folders of a run's checkpoints: iter_0000010/ for each saved step, and the tracker, which names
// the last one.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/files/descriptor.h"

namespace weft::checkpoint {

inline constexpr const char* kTrackerName = "latest_checkpointed_iteration.txt";

std::filesystem::path step_folder(const std::filesystem::path& save, std::int64_t step);

// True for names of steps and of the tracker in a checkpoint folder.
bool is_of_checkpoints(std::string_view name);

bool is_whole(const std::filesystem::path& step_folder);

// Size of its files; 0: not accessible.
std::uint64_t bytes_in(const std::filesystem::path& step_folder);

// Steps with a folder, ascending, complete or not.
std::vector<std::int64_t> saved_steps(const std::filesystem::path& save);

// Steps after `first` with a readable manifest and files of the sizes that it names,
// ascending.
std::vector<std::int64_t> usable_steps(const std::filesystem::path& save, std::int64_t first);

struct Found {
  std::filesystem::path folder;  // folder of a step
  std::string note;  // reason for a step other than the tracker's; empty: it is the tracker's
};

// Finds the checkpoint to load. It is `load` itself if that is a step's folder, otherwise the
// newest complete checkpoint. This is usually the tracker's step. It is a later step if that save
// ended between manifest and tracker, and an earlier one if the tracker's step is incomplete.
// nullopt: nothing was ever saved. ConfigError: only incomplete checkpoints exist, or the given
// `step` does not.
std::optional<Found> find_checkpoint(const std::filesystem::path& load,
                                     std::optional<std::int64_t> step = std::nullopt);

// Suggestion at the end of an error about a damaged step: the newest earlier step with a valid
// manifest and correct sizes.
std::string way_back(const std::filesystem::path& step_folder);

// Checksum of the manifest that the tracker names; the next save follows it.
std::optional<std::uint32_t> tracked_checksum(const std::filesystem::path& save);

// Removes shards unknown to the manifest of a step's folder: from an unfinished replacement or a
// replaced checkpoint.
void remove_strays(const std::filesystem::path& step_folder);

// Makes a step's folder in an existing folder. A complete checkpoint of that step stays valid until
// the new manifest replaces its manifest; other content is removed.
std::filesystem::path make_step_folder(const std::filesystem::path& save, std::int64_t step);

// Removes the files of an unfinished or unwanted step.
void remove_step(const std::filesystem::path& save, std::int64_t step);

// Locks the folder: no other run can save there while the descriptor is open. SystemError if
// another run has the lock. A killed run keeps the lock until its writes reach the disk; this call
// waits up to `patience`. `goes_on` is polled meanwhile; false cancels the wait.
inline constexpr std::chrono::milliseconds kLockPatience{10'000};
base::Descriptor lock_folder(
    const std::filesystem::path& save,
    std::chrono::milliseconds patience = kLockPatience,
    const std::function<bool()>& goes_on = [] { return true; });

void write_tracker(const std::filesystem::path& save, std::int64_t step);

// Removes checkpoints of earlier steps until `keep` including `newest` are left, and all incomplete
// earlier ones. Later steps, which belong to another run, stay.
void remove_old_steps(const std::filesystem::path& save, std::int64_t newest, std::int64_t keep);

}  // namespace weft::checkpoint
