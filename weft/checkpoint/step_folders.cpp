#include "weft/checkpoint/step_folders.h"

#include <fcntl.h>

#include <algorithm>
#include <charconv>

#include "weft/base/error.h"
#include "weft/base/file.h"
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

// The names in a folder; none where it is not there.
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

// The manifest first: a folder that lost a shard must not look whole. Files of other makers stay.
void empty_step_folder(const fs::path& folder) {
  if (!is_present(folder)) return;
  if (is_present(folder / kManifestName)) {
    remove_file(folder / kManifestName);
    base::sync_folder(folder);
  }
  for (const std::string& name : names_in(folder)) {
    const bool is_shard = name.starts_with("rank_") && name.find(".safetensors") != name.npos;
    if (is_shard || name.starts_with(kManifestName)) remove_file(folder / name);
  }
}

std::optional<std::int64_t> tracked_step(const fs::path& tracker) {
  if (!is_present(tracker)) return std::nullopt;
  std::string content = base::read_text(tracker, kMostTrackerBytes);
  while (!content.empty() && (content.back() == '\n' || content.back() == ' ')) content.pop_back();
  const std::optional<std::int64_t> step = whole_number(content);
  if (step) return step;
  throw base::ConfigError(text("'{}' says '{}'; the number of a step expected",
                               tracker.string(),
                               base::shown(content)));
}

}  // namespace

fs::path step_folder(const fs::path& save, std::int64_t step) { return save / folder_name(step); }

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
    if (!name.starts_with(kStepFront)) continue;
    const auto step = whole_number(std::string_view(name).substr(kStepFront.size()));
    if (step && folder_name(*step) == name) steps.push_back(*step);
  }
  std::ranges::sort(steps);
  return steps;
}

std::optional<Found> find_checkpoint(const fs::path& load) {
  if (is_whole(load)) return Found{.folder = load};
  const std::optional<std::int64_t> tracked = tracked_step(load / kTrackerName);
  if (tracked && is_whole(step_folder(load, *tracked))) {
    return Found{.folder = step_folder(load, *tracked)};
  }
  const std::vector<std::int64_t> steps = saved_steps(load);
  const std::int64_t last = tracked.value_or(INT64_MAX);
  const auto best = std::find_if(steps.rbegin(), steps.rend(), [&](std::int64_t step) {
    return step <= last && is_whole(step_folder(load, step));
  });
  if (best != steps.rend()) {
    return Found{.folder = step_folder(load, *best),
                 .note = tracked ? text("the checkpoint of step {}, which '{}' names, was never "
                                        "finished",
                                        *tracked,
                                        kTrackerName)
                                 : text("'{}' is not there", kTrackerName)};
  }
  if (tracked) {
    throw base::ConfigError(text("'{}' names step {}, and '{}' is not whole: it has no {}",
                                 (load / kTrackerName).string(),
                                 *tracked,
                                 step_folder(load, *tracked).string(),
                                 kManifestName));
  }
  return std::nullopt;
}

fs::path make_step_folder(const fs::path& save, std::int64_t step) {
  fs::path folder = step_folder(save, step);
  empty_step_folder(folder);
  std::error_code error;
  fs::create_directories(folder, error);
  if (error || !fs::is_directory(folder, error)) {
    throw base::SystemError(text("cannot make '{}': {}", folder.string(), error.message()));
  }
  base::sync_folder(save);
  return folder;
}

void remove_step(const fs::path& save, std::int64_t step) {
  const fs::path folder = step_folder(save, step);
  empty_step_folder(folder);
  std::error_code error;
  fs::remove(folder, error);  // stays where somebody else's files are in it
}

base::Descriptor lock_folder(const fs::path& save) {
  base::Descriptor folder(save, O_RDONLY | O_DIRECTORY, 0, save.string());
  if (base::try_lock(folder) == base::Locked::Elsewhere) {
    throw base::SystemError(
        text("checkpoint.save: another run saves to '{}': wait for its end, or name another folder",
             save.string()));
  }
  return folder;
}

void write_tracker(const fs::path& save, std::int64_t step) {
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
