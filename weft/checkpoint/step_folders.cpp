#include "weft/checkpoint/step_folders.h"

#include <fcntl.h>

#include <algorithm>
#include <charconv>
#include <thread>

#include "weft/base/error.h"
#include "weft/base/files/file.h"
#include "weft/base/text.h"
#include "weft/checkpoint/manifest.h"

namespace weft::checkpoint {
namespace {

namespace fs = std::filesystem;
using base::text;

constexpr std::string_view kStepFront = "iter_";
constexpr std::size_t kMostTrackerBytes = 64;

std::optional<std::int64_t> whole_number(std::string_view digits) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.begin(), digits.end(), value);
  const bool is_number = error == std::errc() && end == digits.end() && value >= 0;
  return is_number ? std::optional(value) : std::nullopt;
}

std::string folder_name(std::int64_t step) { return text("{}{:07}", kStepFront, step); }

std::optional<std::int64_t> step_named(const std::string& name) {
  if (!name.starts_with(kStepFront)) return std::nullopt;
  const auto step = whole_number(std::string_view(name).substr(kStepFront.size()));
  return step && folder_name(*step) == name ? step : std::nullopt;
}

bool is_present(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

void remove_file(const fs::path& path) {
  std::error_code error;
  fs::remove(path, error);
  if (error) {
    throw base::SystemError(text("cannot remove '{}': {}", path.string(), error.message()));
  }
}

// Removes a link and not its target, which is not ours. True if it was a link.
bool remove_link(const fs::path& path) {
  std::error_code error;
  if (!fs::is_symlink(path, error)) return false;
  remove_file(path);
  return true;
}

// Names in a folder; empty if it does not exist.
std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    names.push_back(at->path().filename().string());
  }
  if (error && is_present(folder)) {
    throw base::SystemError(text("cannot read '{}': {}", folder.string(), error.message()));
  }
  return names;
}

// True for a shard, or an unfinished one.
bool is_of_shard(const std::string& name) {
  return name.starts_with("rank_") && name.find(".safetensors") != name.npos;
}

// Removes the manifest first: a folder without all shards must not look complete. Foreign files
// stay.
void empty_step_folder(const fs::path& folder) {
  if (!is_present(folder)) return;
  if (is_present(folder / kManifestName)) {
    remove_file(folder / kManifestName);
    base::sync_folder(folder);
  }
  for (const std::string& name : names_in(folder)) {
    if (is_of_shard(name) || name.starts_with(kManifestName)) remove_file(folder / name);
  }
}

std::optional<std::int64_t> tracked_step(const fs::path& tracker) {
  if (!is_present(tracker)) return std::nullopt;
  std::string content = base::read_text(tracker, kMostTrackerBytes);
  while (!content.empty() && (content.back() == '\n' || content.back() == ' ')) content.pop_back();
  const std::optional<std::int64_t> step = whole_number(content);
  if (step) return step;
  throw base::ConfigError(text(
      "'{}' says '{}'; the number of a step expected: name a step with checkpoint.ckpt_step, or "
      "remove that file, and the newest checkpoint is taken",
      tracker.string(),
      base::shown(content)));
}

// Complete steps up to `last`, ascending.
std::vector<std::int64_t> whole_steps(const fs::path& save, std::int64_t last) {
  std::vector<std::int64_t> steps = saved_steps(save);
  std::erase_if(steps, [&](std::int64_t step) {
    return step > last || !is_whole(step_folder(save, step));
  });
  return steps;
}

// True if its manifest is readable and all its files exist with correct sizes.
bool has_its_files(const fs::path& folder) {
  try {
    const std::string content = base::read_text(folder / kManifestName, kMostManifestBytes);
    return wrong_files(folder, parse_manifest(content, kManifestName)).empty();
  } catch (const base::ConfigError&) {
    return false;
  } catch (const base::SystemError&) {
    return false;
  }
}

fs::path asked_folder(const fs::path& load, std::int64_t step) {
  if (is_whole(load)) {
    throw base::ConfigError(
        text("checkpoint.ckpt_step: '{}' is the folder of one step: give the one that has it, or "
             "leave out checkpoint.ckpt_step",
             load.string()));
  }
  fs::path folder = step_folder(load, step);
  if (is_whole(folder)) return folder;
  const std::vector<std::int64_t> steps = whole_steps(load, INT64_MAX);
  throw base::ConfigError(
      text("checkpoint.ckpt_step: '{}' has no checkpoint of step {}; it has {}",
           load.string(),
           step,
           steps.empty() ? "none" : text("those of {}", fmt::join(steps, ", "))));
}

// True if a complete checkpoint follows the one with that checksum. An unreadable manifest sets
// `note`.
bool follows(const fs::path& folder, std::uint32_t checksum, std::string& note) {
  if (!is_whole(folder)) return false;
  try {
    return read_manifest(folder).follows == checksum;
  } catch (const base::ConfigError& error) {
    note = error.what();
  } catch (const base::SystemError& error) {
    note = error.what();
  }
  return false;
}

// Last step in the chain of checkpoints after the tracker's. Other later steps belong to an
// abandoned run.
Found last_after(const fs::path& load, std::int64_t tracked) {
  Found found{.folder = step_folder(load, tracked), .note = ""};
  for (std::int64_t last = tracked;;) {
    const std::optional<std::uint32_t> checksum = manifest_checksum(found.folder);
    if (!checksum) return found;
    std::vector<std::int64_t> later = saved_steps(load);
    std::erase_if(later, [&](std::int64_t step) {
      return step <= last || !follows(step_folder(load, step), *checksum, found.note);
    });
    if (later.empty()) return found;
    last = later.back();
    found.folder = step_folder(load, last);
    found.note =
        text("'{}' names step {}; step {} was saved after it", kTrackerName, tracked, last);
  }
}

}  // namespace

fs::path step_folder(const fs::path& save, std::int64_t step) { return save / folder_name(step); }

bool is_of_checkpoints(std::string_view name) {
  return name.starts_with(kStepFront) || name == kTrackerName;
}

bool is_whole(const fs::path& step_folder) { return is_present(step_folder / kManifestName); }

std::uint64_t bytes_in(const fs::path& step_folder) {
  std::uint64_t bytes = 0;
  std::error_code error;
  for (fs::directory_iterator at(step_folder, error), end; !error && at != end;
       at.increment(error)) {
    std::error_code unknown;
    const std::uintmax_t size = at->file_size(unknown);
    if (!unknown) bytes += size;
  }
  return bytes;
}

std::vector<std::int64_t> saved_steps(const fs::path& save) {
  std::vector<std::int64_t> steps;
  for (const std::string& name : names_in(save)) {
    if (const std::optional<std::int64_t> step = step_named(name)) steps.push_back(*step);
  }
  std::ranges::sort(steps);
  return steps;
}

std::vector<std::int64_t> usable_steps(const fs::path& save, std::int64_t first) {
  std::vector<std::int64_t> steps = saved_steps(save);
  std::erase_if(steps, [&](std::int64_t step) {
    return step <= first || !has_its_files(step_folder(save, step));
  });
  return steps;
}

std::optional<Found> find_checkpoint(const fs::path& load, std::optional<std::int64_t> step) {
  if (step) return Found{.folder = asked_folder(load, *step), .note = ""};
  if (is_whole(load)) return Found{.folder = load, .note = ""};
  const std::optional<std::int64_t> tracked = tracked_step(load / kTrackerName);
  if (tracked && is_whole(step_folder(load, *tracked))) return last_after(load, *tracked);
  const std::vector<std::int64_t> steps = whole_steps(load, tracked.value_or(INT64_MAX));
  if (!steps.empty()) {
    return Found{.folder = step_folder(load, steps.back()),
                 .note = tracked ? text("the checkpoint of step {}, which '{}' names, was never "
                                        "finished",
                                        *tracked,
                                        kTrackerName)
                                 : text("'{}' is not there", kTrackerName)};
  }
  if (const auto later = whole_steps(load, INT64_MAX); tracked && !later.empty()) {
    return Found{.folder = step_folder(load, later.back()),
                 .note = text("'{}' names step {}, which is gone", kTrackerName, *tracked)};
  }
  if (tracked) {
    throw base::ConfigError(text(
        "'{}' names step {}, and '{}' is not whole: it has no {}; there is no other checkpoint: "
        "remove the first file to start anew",
        (load / kTrackerName).string(),
        *tracked,
        step_folder(load, *tracked).string(),
        kManifestName));
  }
  return std::nullopt;
}

std::string way_back(const fs::path& step_folder) {
  const std::int64_t step = step_named(step_folder.filename().string()).value_or(0);
  const fs::path save = step_folder.parent_path();
  std::vector<std::int64_t> before = whole_steps(save, step - 1);
  while (!before.empty() && !has_its_files(checkpoint::step_folder(save, before.back()))) {
    before.pop_back();
  }
  if (before.empty()) return "restore it; there is no whole checkpoint before it";
  return text(
      "restore it, or go on from the newest whole checkpoint before it: checkpoint.load={} "
      "checkpoint.ckpt_step={}",
      save.string(),
      before.back());
}

std::optional<std::uint32_t> tracked_checksum(const fs::path& save) {
  try {
    const std::optional<std::int64_t> tracked = tracked_step(save / kTrackerName);
    return tracked ? manifest_checksum(step_folder(save, *tracked)) : std::nullopt;
  } catch (const base::ConfigError&) {  // no Weft tracker: it is about to be replaced
    return std::nullopt;
  } catch (const base::SystemError&) {  // too long for a tracker
    return std::nullopt;
  }
}

void remove_strays(const fs::path& step_folder) {
  const Manifest manifest = read_manifest(step_folder);
  for (const std::string& name : names_in(step_folder)) {
    if (is_of_shard(name) && !names_file(manifest, name)) remove_file(step_folder / name);
  }
}

fs::path make_step_folder(const fs::path& save, std::int64_t step) {
  fs::path folder = step_folder(save, step);
  remove_link(folder);
  has_its_files(folder) ? remove_strays(folder) : empty_step_folder(folder);
  std::error_code error;
  // Not its parents: a missing one means that the folder vanished.
  fs::create_directory(folder, error);
  if (error || !fs::is_directory(folder, error)) {
    throw base::SystemError(text("cannot make '{}': {}", folder.string(), error.message()));
  }
  base::sync_folder(save);
  return folder;
}

void remove_step(const fs::path& save, std::int64_t step) {
  const fs::path folder = step_folder(save, step);
  std::error_code error;
  if (remove_link(folder) || !fs::is_directory(folder, error)) return;
  empty_step_folder(folder);
  fs::remove(folder, error);  // stays if foreign files are in it
}

base::Descriptor lock_folder(const fs::path& save,
                             std::chrono::milliseconds patience,
                             const std::function<bool()>& goes_on) {
  constexpr std::chrono::milliseconds kPause{50};
  const auto end = std::chrono::steady_clock::now() + patience;
  base::Descriptor folder(save, O_RDONLY | O_DIRECTORY, 0, save.string());
  while (base::try_lock(folder) == base::Locked::Elsewhere) {
    if (goes_on() && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(kPause);
      continue;
    }
    throw base::SystemError(
        text("checkpoint.save: another run saves to '{}': wait for its end, or name another folder",
             save.string()));
  }
  return folder;
}

void write_tracker(const fs::path& save, std::int64_t step) {
  remove_link(save / kTrackerName);  // a link would be followed out of the folder
  base::write_whole(save / kTrackerName, text("{}\n", step));
  base::sync_folder(save);
}

void remove_old_steps(const fs::path& save, std::int64_t newest, std::int64_t keep) {
  std::vector<std::int64_t> steps = saved_steps(save);
  std::erase_if(steps, [&](std::int64_t step) { return step >= newest; });
  std::int64_t kept = 1;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    const bool stays = kept < keep && is_whole(step_folder(save, *step));
    stays ? void(++kept) : remove_step(save, *step);
  }
}

}  // namespace weft::checkpoint
