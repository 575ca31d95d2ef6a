#include "weft/config/recipe.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/config/field.h"
#include "weft/config/recipe_file.h"

namespace weft::config {
namespace {

using base::text;
namespace fs = std::filesystem;

constexpr std::size_t kLongestChain = 8;

std::vector<Setting> operator+(std::vector<Setting> first, const std::vector<Setting>& then) {
  first.insert(first.end(), then.begin(), then.end());
  return first;
}

// "a -> b -> a", for messages.
std::string chain_text(const std::vector<fs::path>& chain, const fs::path& last) {
  std::string all;
  for (const fs::path& file : chain) all += file.stem().string() + " -> ";
  return all + last.stem().string();
}

// `chain`: the files that led here, each extending the next.
Recipe load(const fs::path& file, std::vector<fs::path>& chain) {
  RecipeFile read = read_recipe_file(file);
  if (read.extends.empty()) return std::move(read.recipe);
  chain.push_back(fs::weakly_canonical(file));
  const bool is_path =
      read.extends.find('/') != std::string::npos || read.extends.ends_with(".yaml");
  const fs::path folder = file.parent_path();
  const ChosenRecipe base = [&] {
    try {
      return find_recipe(folder, is_path ? (folder / read.extends).string() : read.extends);
    } catch (const base::ConfigError& error) {
      throw base::ConfigError(text("{}: extends: {}", read.where, error.what()));
    }
  }();
  const fs::path next = fs::weakly_canonical(base.file);
  if (std::ranges::find(chain, next) != chain.end()) {
    throw base::ConfigError(text("{}: recipes extend each other in a circle, {}: remove one",
                                 read.where,
                                 chain_text(chain, next)));
  }
  if (chain.size() > kLongestChain) {
    throw base::ConfigError(text("{}: recipes extend each other more than {} deep, {}: remove some",
                                 read.where,
                                 kLongestChain,
                                 chain_text(chain, next)));
  }
  read.recipe.settings = settings_of(load(base.file, chain), base.layout) + read.recipe.settings;
  return std::move(read.recipe);
}

// The file whose name begins `word`, and whose layout the rest is; the longest such name.
std::optional<ChosenRecipe> split_name(const std::vector<fs::path>& files, std::string_view word) {
  std::optional<ChosenRecipe> best;
  for (const fs::path& file : files) {
    const std::string stem = file.stem().string() + "_";
    if (!word.starts_with(stem) || word.size() == stem.size()) continue;
    if (!best || stem.size() > best->file.stem().string().size() + 1) {
      best = ChosenRecipe(file, std::string(word.substr(stem.size())));
    }
  }
  return best;
}

[[noreturn]] void refuse_name(const fs::path& folder,
                              const std::vector<fs::path>& files,
                              std::string_view word) {
  std::vector<std::string> names;
  for (const fs::path& known : files) names.push_back(known.stem().string());
  const auto best = word.size() <= 128 ? base::nearest(word, names) : std::nullopt;
  throw base::ConfigError(text("no recipe '{}' in '{}': {}",
                               shown(word),
                               folder.string(),
                               best ? text("did you mean '{}'?", *best)
                                    : "`weft recipes` lists them, WEFT_RECIPES sets the folder, "
                                      "a path ends in .yaml"));
}

const RecipeLayout& find_layout(const Recipe& recipe, std::string_view name) {
  const auto found = std::ranges::find(recipe.layouts, name, &RecipeLayout::name);
  if (found != recipe.layouts.end()) return *found;
  std::vector<std::string> names;
  for (const RecipeLayout& layout : recipe.layouts) names.push_back(layout.name);
  const auto best = name.size() <= 128 ? base::nearest(name, names) : std::nullopt;
  throw base::ConfigError(text("recipe '{}' has no layout '{}': {}",
                               recipe.name,
                               shown(name),
                               best ? text("did you mean '{}_{}'?", recipe.name, *best)
                               : names.empty()
                                   ? "it has none"
                                   : text("`weft recipes {}` lists them", recipe.name)));
}

// Whether `path` leads to data: a file, a folder, or the two files of an indexed dataset.
bool leads_to_data(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored) || fs::exists(path.string() + ".idx", ignored);
}

// A recipe's relative path means the current folder and, where nothing is there, the folder that
// holds the recipe's own: so a shipped recipe finds the source tree from anywhere.
std::string located(const std::string& path, const fs::path& recipe) {
  if (path.empty() || fs::path(path).is_absolute() || leads_to_data(path)) return path;
  const fs::path beside = fs::absolute(recipe).lexically_normal().parent_path().parent_path();
  return leads_to_data(beside / path) ? (beside / path).string() : path;
}

void apply_all(const std::vector<Setting>& settings,
               Config& config,
               std::vector<std::string>& complaints) {
  for (const Setting& setting : settings) apply(setting, config, complaints);
}

}  // namespace

std::string ChosenRecipe::name() const {
  return layout.empty() ? file.stem().string() : file.stem().string() + "_" + layout;
}

Recipe load_recipe(const fs::path& file) {
  std::vector<fs::path> chain;
  return load(file, chain);
}

ChosenRecipe find_recipe(const fs::path& folder, std::string_view word) {
  const bool is_path = word.find('/') != std::string_view::npos || word.ends_with(".yaml");
  std::error_code ignored;
  const fs::path file = is_path ? fs::path(word) : folder / (std::string(word) + ".yaml");
  if (word.size() <= kLongestText && fs::is_regular_file(file, ignored)) return file;
  if (is_path) {
    throw base::ConfigError(
        text("recipe '{}' is not a file: give the path of one, or a name from '{}' (WEFT_RECIPES "
             "sets that folder)",
             shown(word),
             folder.string()));
  }
  const std::vector<fs::path> files = recipe_files(folder);
  const std::optional<ChosenRecipe> chosen = split_name(files, word);
  if (!chosen) refuse_name(folder, files, word);
  return *chosen;
}

std::vector<fs::path> recipe_files(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (it->path().extension() == ".yaml") files.push_back(it->path());
  }
  if (error) {
    throw base::ConfigError(
        text("cannot list the recipes folder '{}': {}", folder.string(), error.message()));
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<Setting> settings_of(const Recipe& recipe, std::string_view layout) {
  const std::string_view name = layout.empty() ? std::string_view(recipe.layout) : layout;
  if (name.empty()) return recipe.settings;
  return recipe.settings + find_layout(recipe, name).settings;
}

Config config_of(const Recipe& recipe, std::string_view layout) {
  Config config;
  std::vector<std::string> complaints;
  apply_all(settings_of(recipe, layout), config, complaints);
  if (!complaints.empty()) throw base::ConfigError(std::move(complaints));
  return config;
}

Config resolve(const std::optional<ChosenRecipe>& recipe, std::span<const std::string> overrides) {
  Config config;
  std::vector<std::string> complaints;
  if (recipe) {
    apply_all(settings_of(load_recipe(recipe->file), recipe->layout), config, complaints);
    config.dataset.path = located(config.dataset.path, recipe->file);
  }
  apply_overrides(overrides, config, complaints);
  if (!complaints.empty()) throw base::ConfigError(std::move(complaints));
  return config;
}

}  // namespace weft::config
