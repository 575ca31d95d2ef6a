#include "weft/words/resolution.h"

#include <algorithm>
#include <optional>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/config/field.h"
#include "weft/config/other_names.h"
#include "weft/words/data_words.h"
#include "weft/words/harness/harness_effects.h"
#include "weft/words/megatron/launch_effects.h"
#include "weft/words/megatron/megatron_line.h"
#include "weft/words/megatron/megatron_settings.h"
#include "weft/words/model_folder.h"
#include "weft/words/only_one.h"
#include "weft/words/perf_recipe.h"
#include "weft/words/recipe.h"
#include "weft/words/stage_layouts.h"

namespace weft::words {

using namespace config;
namespace {

namespace fs = std::filesystem;
using Complaints = std::vector<std::string>;

// Runs `act` and collects the complaints of its ConfigError.
template <typename Act>
void keeping(Complaints& complaints, const Act& act) {
  try {
    act();
  } catch (const base::ConfigError& error) {
    complaints.insert(complaints.end(), error.complaints().begin(), error.complaints().end());
  }
}

template <typename T>
void append(std::vector<T>& all, std::vector<T> more) {
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

// Classifies a layout: the harness's own layouts force even routing; the others are training
// recipes, which our names mark if both would share a name.
Offered offered_layout(const std::string& name, const RecipeLayout& layout) {
  const bool forced = std::ranges::any_of(layout.settings, [](const Setting& setting) {
    return setting.key == "model.moe_router_force_load_balancing";
  });
  constexpr std::string_view kMark = "_base";
  const std::string known =
      name.ends_with(kMark) ? name.substr(0, name.size() - kMark.size()) : name;
  return {.name = name,
          .known_as = known,
          .origin = forced ? Offered::Origin::Harness : Offered::Origin::Training};
}

// Names that the model of -mr may mean. Reads only candidate files.
std::vector<Offered> names_of_model(const fs::path& folder, const std::string& model) {
  std::vector<Offered> offered;
  std::vector<std::string> near;
  for (const fs::path& file : recipe_files(folder)) {
    const std::string stem = file.stem().string();
    if (stem.find(model) != std::string::npos) near.push_back(stem);
    if (!stem.starts_with(model)) continue;
    const Recipe recipe = load_recipe(file, folder);
    if (recipe.layouts.empty()) offered.push_back({.name = recipe.name, .known_as = recipe.name});
    for (const RecipeLayout& layout : recipe.layouts) {
      offered.push_back(offered_layout(recipe.full_name(layout), layout));
    }
  }
  if (offered.empty() && !near.empty()) {
    throw base::ConfigError(
        base::text("-mr {}: no model is called so; recipes with it in the name: "
                   "{}",
                   shown(model),
                   fmt::join(near, ", ")));
  }
  return offered;
}

// First word behind a flag that names a recipe.
std::optional<std::string> recipe_among(const fs::path& folder, const Words& read) {
  if (!read.harness.recipe.empty()) return std::nullopt;
  for (const std::string& word : read.behind_flags) {
    std::error_code ignored;
    const bool is_name = word.find_first_of("/.") == std::string::npos && word.size() <= 128;
    if (is_name && fs::is_regular_file(folder / (word + ".yaml"), ignored)) return word;
  }
  return std::nullopt;
}

// Recipe named by the words, by the harness's flags, or by default.
PerfRecipe recipe_of(const fs::path& folder, const Words& read, std::string_view default_recipe) {
  const bool by_flags = !read.harness.recipe.empty();
  if (read.recipe && by_flags) {
    throw base::ConfigError(base::text("two recipes, '{}' and -mr {}: give one",
                                       shown(*read.recipe),
                                       shown(read.harness.recipe)));
  }
  if (read.recipe) return {.name = *read.recipe, .other_gpus = std::nullopt};
  if (by_flags)
    return choose_perf_recipe(names_of_model(folder, read.harness.recipe), read.harness);
  return {.name = std::string(default_recipe), .other_gpus = std::nullopt};
}

// Settings of a file of --config-file, which has no layouts.
std::vector<Setting> settings_of_file(const fs::path& file, const fs::path& folder) {
  std::error_code ignored;
  if (!fs::exists(file, ignored)) {
    throw base::ConfigError(
        base::text("--config-file '{}' does not exist: give a YAML file of the "
                   "shape of a recipe",
                   shown(file.string())));
  }
  const Recipe recipe = load_recipe(file, folder);
  if (!recipe.layouts.empty() || !recipe.layout.empty()) {
    throw base::ConfigError(
        base::text("--config-file '{0}' has layouts, of which none would run: "
                   "give it as the recipe, {0}:LAYOUT, or take them out",
                   shown(file.string())));
  }
  return recipe.settings;
}

void take(DataMeant meant, Resolution& resolution, Complaints& complaints) {
  append(resolution.warnings, std::move(meant.warnings));
  append(resolution.automatic, std::move(meant.automatic));
  append(complaints, std::move(meant.complaints));
}

void apply_file(const fs::path& file,
                const fs::path& folder,
                Config& config,
                Resolution& resolution,
                Complaints& complaints) {
  const std::vector<Setting> settings = settings_of_file(file, folder);
  append(resolution.warnings, other_name_findings(settings));
  const MeantSettings meant = meant_settings(settings);
  apply_meant(meant, config, resolution.warnings, complaints);
  std::vector<std::string> keys;
  for (const Setting& setting : meant.settings) keys.push_back(meant_key(setting.key));
  take(settle_data(keys, config), resolution, complaints);
  const auto is_said = [&](std::string_view key) {
    return std::ranges::find(keys, key) != keys.end();
  };
  for (Displaced& one : displaced(config, is_said)) {
    const Field& field = *find_field(one.key);
    field.set(config, written_from_text(field, one.value));
    resolution.warnings.push_back(finding_of(std::move(one)));
  }
  append(resolution.file_keys, std::move(keys));
}

std::vector<std::string> keys_of(const std::vector<Ledger::SetKey>& set) {
  std::vector<std::string> keys;
  for (const Ledger::SetKey& one : set) keys.push_back(one.key);
  return keys;
}

// Applies the words in order; `last`: the final config, as far as known.
void walk(std::span<const Asked> asked, const Config& last, Ledger& ledger) {
  for (const Asked& one : asked) {
    if (one.effect) {
      apply_effect(one, last, ledger);
    } else {
      ledger.apply(one);
    }
  }
}

// Final config from a first pass, for effects that need the GPU or the layers.
Config last_config(std::span<const Asked> asked, const Config& start) {
  Ledger scratch(start);
  walk(asked, start, scratch);
  return scratch.config();
}

}  // namespace

bool Resolution::is_chosen(std::string_view key) const {
  return std::ranges::find(set_keys, key, &Ledger::SetKey::key) != set_keys.end() ||
         std::ranges::find(file_keys, key) != file_keys.end();
}

Resolution resolve_what_reads(const fs::path& recipes_folder,
                              std::span<const std::string> words,
                              Audience audience,
                              std::string_view default_recipe) {
  Words read = read_words(words, audience);
  if (!read.recipe && !is_megatron_line(read)) read.recipe = recipe_among(recipes_folder, read);
  Resolution resolution{.recipe = {},
                        .config = {},
                        .warnings = std::move(read.warnings),
                        .automatic = {},
                        .harness = read.harness,
                        .set_keys = {},
                        .file_keys = {},
                        .is_megatron_line = is_megatron_line(read),
                        .unknown_vocabulary = false,
                        .complaints = {},
                        .refused_keys = {}};
  Config start;
  PerfRecipe chosen;
  std::string model_folder;  // replaces a recipe; empty: none
  Complaints unreadable;
  keeping(unreadable, [&] {
    chosen = recipe_of(recipes_folder, read, is_megatron_line(read) ? "" : default_recipe);
    if (chosen.name.empty()) return;
    if (model_config_file(recipes_folder, chosen.name)) {
      model_folder = chosen.name;
      start.checkpoint.pretrained_checkpoint = chosen.name;
      return;
    }
    const ChosenRecipe recipe = find_recipe(recipes_folder, chosen.name);
    resolution.recipe = recipe.name();
    LoadedRecipe loaded = load_with_findings(recipe, recipes_folder);
    start = std::move(loaded.config);
    append(resolution.warnings, std::move(loaded.warnings));
    resolution.file_keys = std::move(loaded.keys);
  });
  for (const fs::path& file : read.files) {
    keeping(unreadable, [&] { apply_file(file, recipes_folder, start, resolution, unreadable); });
  }
  Ledger ledger(start);
  walk(read.asked, last_config(read.asked, start), ledger);
  finish_effects(read.asked, ledger);
  displace_others(ledger);
  finish_launch(read, ledger);
  if (is_megatron_line(read)) {
    resolution.unknown_vocabulary = finish_megatron_line(read, ledger);
  }
  finish_stages(resolution.recipe, read.asked, ledger);
  if (chosen.other_gpus) scale_batch(start, *chosen.other_gpus, read.harness, ledger);
  Complaints complaints = std::move(read.complaints);
  append(complaints, unreadable);
  const std::string& model = ledger.config().checkpoint.pretrained_checkpoint;
  if (!model_folder.empty() && model != model_folder) {
    complaints.push_back(
        base::text("two models, '{}' and checkpoint.pretrained_checkpoint='{}': give one",
                   shown(model_folder),
                   shown(model)));
  }
  append(complaints, ledger.take_complaints());
  append(resolution.automatic, ledger.take_automatic());
  resolution.config = ledger.config();
  resolution.set_keys = ledger.set_keys();
  DataMeant data = settle_data(keys_of(resolution.set_keys), resolution.config);
  for (const Finding& unread : data.warnings) {
    find_field(unread.key)->copy(Config(), resolution.config);
  }
  take(std::move(data), resolution, complaints);
  if (!unreadable.empty()) throw base::ConfigError(std::move(complaints));
  resolution.complaints = std::move(complaints);
  resolution.refused_keys = ledger.take_refused_keys();
  append(resolution.warnings, ledger.take_warnings());
  return resolution;
}

Resolution resolve_words(const fs::path& recipes_folder,
                         std::span<const std::string> words,
                         Audience audience,
                         std::string_view default_recipe) {
  Resolution resolution = resolve_what_reads(recipes_folder, words, audience, default_recipe);
  if (!resolution.complaints.empty()) throw base::ConfigError(std::move(resolution.complaints));
  return resolution;
}

Config with_words(const Config& start, std::span<const std::string> words) {
  Words read = read_words(words, Audience::Run);
  Complaints complaints = std::move(read.complaints);
  if (read.recipe) complaints.push_back(base::text("'{}': write key=value", shown(*read.recipe)));
  Ledger ledger(start);
  walk(read.asked, last_config(read.asked, start), ledger);
  finish_effects(read.asked, ledger);
  append(complaints, ledger.take_complaints());
  Config config = ledger.config();
  append(complaints, settle_data(keys_of(ledger.set_keys()), config).complaints);
  if (!complaints.empty()) throw base::ConfigError(std::move(complaints));
  return config;
}

}  // namespace weft::words
