#include "weft/train/places.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/files/file.h"
#include "weft/base/files/folder_path.h"
#include "weft/base/text.h"
#include "weft/checkpoint/new_folder.h"
#include "weft/checkpoint/step_folders.h"
#include "weft/train/log/run_folder.h"
#include "weft/train/saves/save_parts.h"

namespace weft::train {
namespace {

namespace fs = std::filesystem;
using base::text;

// True if `inner` is the folder itself or below it.
bool holds(const fs::path& folder, const fs::path& inner) {
  std::error_code error;
  // Without a slash at the end, which would be a component.
  const auto whole = [&](const fs::path& path) {
    const fs::path all = fs::weakly_canonical(path, error);
    return all.has_filename() ? all : all.parent_path();
  };
  const fs::path outer = whole(folder), path = whole(inner);
  if (error) return false;
  return std::mismatch(outer.begin(), outer.end(), path.begin(), path.end()).first == outer.end();
}

// Steps done before the first step of this run.
std::int64_t first_step_of(const std::optional<Resumption>& resumed) {
  return resumed && resumed->loads != Loads::Weights ? resumed->manifest.step : 0;
}

}  // namespace

bool checkpoint_has_all_steps(const config::Config& config,
                              const std::optional<Resumption>& resumed) {
  return first_step_of(resumed) >= config.train.train_iters;
}

void require_folders(const config::Config& config) {
  const std::pair<const char*, const std::string&> folders[] = {
      {"runtime.run_dir", config.runtime.run_dir},
      {"checkpoint.save", config.checkpoint.save},
      {"checkpoint.save_hf", config.checkpoint.save_hf},
      {"logger.tensorboard_dir", config.logger.tensorboard_dir}};
  std::vector<std::string> complaints;
  for (const auto& [key, folder] : folders) {
    const std::string obstacle = base::folder_obstacle(folder);
    if (!obstacle.empty()) complaints.push_back(text("{}: {}", key, obstacle));
  }
  // Weights move to their folder at the end, which nothing else may have made by then.
  const std::string& weights = config.checkpoint.save_hf;
  for (const auto& [key, folder] : folders) {
    if (weights.empty() || folder.empty() || &folder == &weights) continue;
    if (!holds(weights, folder)) continue;
    complaints.push_back(
        text("checkpoint.save_hf: '{}' would hold {} = '{}' too: give the weights a "
             "folder of their own",
             weights,
             key,
             folder));
  }
  if (!complaints.empty()) throw base::ConfigError(std::move(complaints));
}

std::vector<std::string> place_complaints(const config::Config& config,
                                          const std::optional<Resumption>& resumed,
                                          base::Overwrite overwrite) {
  std::vector<std::string> complaints;
  if (checkpoint_has_all_steps(config, resumed)) return complaints;
  if (overwrite == base::Overwrite::No) {
    for (const std::string& complaint : {run_folder_complaint(config, first_step_of(resumed)),
                                         replacement_text(config, resumed)}) {
      if (!complaint.empty()) complaints.push_back(complaint);
    }
  }
  if (const std::string& folder = config.checkpoint.save_hf; !folder.empty()) {
    try {
      checkpoint::require_free_folder(folder, overwrite, "checkpoint.save_hf: ");
    } catch (const base::ConfigError& error) {
      complaints.push_back(error.what());
    }
  }
  return complaints;
}

void require_places(const config::Config& config,
                    const std::optional<Resumption>& resumed,
                    const std::optional<checkpoint::HuggingFaceConfig>& written,
                    base::Overwrite overwrite) {
  std::vector<std::string> complaints = place_complaints(config, resumed, overwrite);
  if (!complaints.empty()) throw base::ConfigError(std::move(complaints));
  if (!written || checkpoint_has_all_steps(config, resumed)) return;
  try {
    const checkpoint::NewFolder room(config.checkpoint.save_hf, overwrite);
    base::require_writable(room.path() / "room", checkpoint::huggingface_bytes(*written));
  } catch (const base::SystemError& error) {
    throw base::SystemError(text("checkpoint.save_hf: {}", error.what()));
  }
}

void require_places_at_start(const config::Config& config,
                             const std::optional<Resumption>& resumed,
                             const std::optional<checkpoint::HuggingFaceConfig>& written,
                             base::Overwrite overwrite) {
  const bool may_wait = !config.checkpoint.load.empty() && !config.checkpoint.save.empty();
  if (may_wait || config::are_processes(config.runtime.backend)) return;
  require_places(config, resumed, written, overwrite);
}

void remove_leftovers(const config::Config& config,
                      const std::optional<Resumption>& resumed,
                      const std::function<void(const std::string& line)>& log) {
  const fs::path save = config.checkpoint.save;
  const std::int64_t keep = config.checkpoint.most_recent_k, step = first_step_of(resumed);
  const bool went_on = resumed && resumed->loads != Loads::Weights && !save.empty() &&
                       base::is_same_path(resumed->folder.parent_path(), save);
  if (!went_on || keep < 0 || !checkpoint::is_whole(checkpoint::step_folder(save, step))) return;
  const std::string failure = failure_of([&] {
    checkpoint::write_tracker(save, step);  // the tracker may still name a step that is removed now
    checkpoint::remove_old_steps(save, step, keep);
  });
  if (!failure.empty()) log("warning: old checkpoints stay: " + failure);
}

}  // namespace weft::train
