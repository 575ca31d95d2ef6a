#include "weft/cli/run/start_model.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/checkpoint/manifest.h"
#include "weft/checkpoint/step_folders.h"
#include "weft/cli/arguments.h"
#include "weft/cli/output.h"
#include "weft/cli/run/launcher.h"
#include "weft/config/field.h"
#include "weft/train/saves/continuing.h"
#include "weft/train/weights.h"
#include "weft/words/recipe.h"

namespace weft::cli {
namespace {

namespace fs = std::filesystem;

// Error with a hint against the model's name on the hub, a common mistake.
void require_folder(const std::string& start) {
  std::error_code error;
  if (fs::is_directory(start, error)) return;
  throw base::ConfigError(base::text(
      "checkpoint.pretrained_checkpoint='{}' is no folder: give a folder of this machine that has "
      "config.json and the weights (a model of the Hugging Face hub is downloaded first: "
      "huggingface-cli download ORGANISATION/MODEL --local-dir FOLDER)",
      start));
}

// Checkpoint that a run without a recipe resumes from; nullopt: the words name a run, or nothing
// was saved yet.
std::optional<fs::path> found_checkpoint(const words::Resolution& run,
                                         const config::CheckpointConfig& checkpoint) {
  if (checkpoint.load.empty() || !run.recipe.empty()) return std::nullopt;
  const auto found = checkpoint::find_checkpoint(checkpoint.load, checkpoint.ckpt_step);
  return found ? std::optional(found->folder) : std::nullopt;
}

// True for keys taken from the checkpoint's config; times to leave and output paths are not.
bool is_taken(const config::Field& field) {
  constexpr std::array<std::string_view, 8>
      kSections{"model", "dataset", "train", "optimizer", "scheduler", "rng", "ddp", "tokenizer"};
  return std::ranges::find(kSections, field.section) != kSections.end() &&
         !field.key.starts_with("train.exit_");
}

// One of these keys decides what is read; the others follow from it.
constexpr std::array<std::string_view, 5> kDataKeys{"dataset.kind",
                                                    "dataset.path",
                                                    "dataset.blend",
                                                    "dataset.blend_per_split",
                                                    "dataset.split"};

config::Config from_checkpoint(const words::Resolution& run, const config::Config& config) {
  const std::optional<fs::path> folder = found_checkpoint(run, config.checkpoint);
  if (!folder) return config;
  const std::string named = base::text("{} in '{}'", checkpoint::kManifestName, folder->string());
  const config::Config saved =
      words::parse_config(checkpoint::read_manifest(*folder).config, named);
  const bool names_data =
      std::ranges::any_of(kDataKeys, [&](std::string_view key) { return run.is_chosen(key); });
  config::Config begun = config;
  for (const config::Field& field : config::fields()) {
    if (!is_taken(field) || run.is_chosen(field.key)) continue;
    const bool is_data = std::ranges::find(kDataKeys, field.key) != kDataKeys.end();
    if (!is_data || !names_data) field.copy(saved, begun);
  }
  return begun;
}

}  // namespace

StartedRun started(const words::Resolution& run, const config::Config& config) {
  const std::string& start = config.checkpoint.pretrained_checkpoint;
  if (start.empty()) return {.config = from_checkpoint(run, config), .automatic = {}};
  refuse_keys(run,
              train::kFolderModelKeys,
              base::text("the model comes from checkpoint.pretrained_checkpoint='{}'", start));
  require_folder(start);
  const checkpoint::HuggingFaceModel model(start);
  warn_of_weights(model);
  StartedRun begun{.config = train::with_model_of(config, model), .automatic = {}};
  const auto is_chosen = [&](std::string_view key) { return run.is_chosen(key); };
  begun.automatic = train::set_continuing(model.config(), is_chosen, begun.config);
  return begun;
}

config::Config with_start(const words::Resolution& run, const config::Config& config) {
  return started(run, config).config;
}

std::string name_of_run(const words::Resolution& run, const config::Config& config) {
  if (!run.recipe.empty()) return run.recipe;
  if (run.is_megatron_line) return "megatron-line";
  const config::CheckpointConfig& checkpoint = config.checkpoint;
  const fs::path start =
      checkpoint.pretrained_checkpoint.empty() ? checkpoint.load : checkpoint.pretrained_checkpoint;
  if (start.empty()) return "defaults";
  const fs::path whole = fs::absolute(start).lexically_normal();
  return (whole.has_filename() ? whole : whole.parent_path()).filename().string();
}

void warn_of_weights(const checkpoint::HuggingFaceModel& model) {
  if (const std::string remark = model.remark(); !remark.empty() && launcher_rank() == 0) {
    print_warning(remark);
  }
}

}  // namespace weft::cli
