#include "weft/words/recipe.h"

#include <algorithm>
#include <cctype>
#include <regex>

#include "weft/base/error.h"
#include "weft/base/files/pipe.h"
#include "weft/base/text.h"
#include "weft/config/blend_list.h"
#include "weft/config/field.h"
#include "weft/derive/evaluation_sets.h"
#include "weft/words/data_words.h"
#include "weft/words/megatron/megatron_settings.h"
#include "weft/words/recipe_file.h"

namespace weft::words {

using namespace config;
namespace {

using base::text;
namespace fs = std::filesystem;

constexpr std::size_t kLongestChain = 8;
constexpr std::size_t kLargestConfig = 1u << 20;

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

// File whose name is the longest prefix of `word`, with the rest as its layout.
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

// True for a word with '/', or with a YAML file and optionally a layout.
bool is_path(std::string_view word) {
  return word.find('/') != std::string_view::npos || word.ends_with(".yaml") ||
         word.find(".yaml:") != std::string_view::npos;
}

fs::path shown_folder(const fs::path& folder) { return folder.empty() ? "." : folder; }

// File of that name in a folder, or the file whose layout it names.
std::optional<ChosenRecipe> find_name(const fs::path& folder, std::string_view word) {
  std::error_code ignored;
  const fs::path file = folder / (std::string(word) + ".yaml");
  if (word.size() <= kLongestText && fs::is_regular_file(file, ignored)) return file;
  return split_name(recipe_files(shown_folder(folder)), word);
}

bool has_layout(const ChosenRecipe& chosen) {
  try {
    const std::vector<RecipeLayout> layouts = read_recipe_file(chosen.file).recipe.layouts;
    return std::ranges::find(layouts, chosen.layout, &RecipeLayout::name) != layouts.end();
  } catch (const base::ConfigError&) {
    return false;
  }
}

// True if `file` may extend the recipe found beside it: it is not the file itself, and its layout
// exists.
bool is_base(const fs::path& file, const ChosenRecipe& beside) {
  if (!beside.layout.empty() && !has_layout(beside)) return false;
  std::error_code ignored;
  return !beside.layout.empty() || !fs::equivalent(beside.file, file, ignored);
}

// Target of `extends: word` in `file`: a path relative to the file, a name beside it, or a name in
// the recipes folder.
ChosenRecipe find_base(const fs::path& file, const fs::path& folder, const std::string& word) {
  const fs::path beside = file.parent_path();
  if (is_path(word)) return find_recipe(folder, (beside / word).string());
  const std::optional<ChosenRecipe> found = find_name(beside, word);
  if (folder.empty() || (found && is_base(file, *found))) {
    return found ? *found : find_recipe(shown_folder(beside), word);
  }
  const std::optional<ChosenRecipe> shipped = find_name(folder, word);
  if (shipped) return *shipped;
  return found ? *found : find_recipe(folder, word);
}

// `chain`: the files that led here, each extending the next.
Recipe load(const fs::path& file, const fs::path& folder, std::vector<fs::path>& chain) {
  RecipeFile read = read_recipe_file(file);
  read.recipe.files.push_back(file);
  if (read.extends.empty()) return std::move(read.recipe);
  chain.push_back(fs::weakly_canonical(file));
  const ChosenRecipe base = [&] {
    try {
      return find_base(file, folder, read.extends);
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
  const Recipe extended = load(base.file, folder, chain);
  read.recipe.settings = settings_of(extended, base.layout) + read.recipe.settings;
  read.recipe.files.insert(read.recipe.files.end(), extended.files.begin(), extended.files.end());
  return std::move(read.recipe);
}

// Lower-case form with '_' for other characters.
std::string plain_name(std::string_view word) {
  std::string plain;
  for (const unsigned char c : word) {
    plain += std::isalnum(c) != 0 ? static_cast<char>(std::tolower(c)) : '_';
  }
  return plain;
}

// Likely intended name: equal except for case and marks, an extension of the word, or a similar
// name.
std::optional<std::string> likely_name(const std::vector<fs::path>& files, std::string_view word) {
  const std::string plain = plain_name(word);
  std::vector<std::string> names;
  std::optional<std::string> longer;
  for (const fs::path& file : files) {
    const std::string name = names.emplace_back(file.stem().string());
    if (name == plain) return name;
    if (plain.empty() || !name.starts_with(plain)) continue;
    if (!longer || name.size() < longer->size()) longer = name;
  }
  if (longer) return longer;
  if (plain != word && split_name(files, plain)) return plain;
  return base::nearest(word, names);
}

// Models with this prefix.
std::vector<std::string> longer_names(const std::vector<fs::path>& files, std::string_view word) {
  const std::string plain = plain_name(word);
  std::vector<std::string> names;
  for (const fs::path& file : files) {
    const std::string name = file.stem().string();
    if (!plain.empty() && name != plain && name.starts_with(plain)) names.push_back(name);
  }
  // Removes twins and further recipes of a listed model.
  const std::vector<std::string> all = names;
  std::erase_if(names, [&](const std::string& name) {
    return std::ranges::any_of(all, [&](const std::string& other) {
      return name.starts_with(other + "_");
    });
  });
  return names;
}

[[noreturn]] void refuse_name(const fs::path& folder,
                              const std::vector<fs::path>& files,
                              std::string_view word) {
  std::error_code ignored;
  const bool is_short = word.size() <= 128;
  const fs::path here = std::string(word.substr(0, 128)) + ".yaml";
  const std::optional<std::string> likely = !is_short ? std::nullopt
                                            : fs::is_regular_file(here, ignored)
                                                ? std::optional(here.string())
                                                : likely_name(files, word);
  const std::vector<std::string> longer =
      is_short ? longer_names(files, word) : std::vector<std::string>{};
  if (longer.size() > 1 && likely && likely->starts_with(plain_name(word))) {
    throw base::ConfigError(text("no recipe '{}' in '{}': did you mean one of {}?",
                                 shown(word),
                                 folder.string(),
                                 fmt::join(longer, ", ")));
  }
  throw base::ConfigError(text("no recipe '{}' in '{}': {}",
                               shown(word),
                               folder.string(),
                               likely ? text("did you mean '{}'?", *likely)
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

// Accepts PATH or PATH.yaml:LAYOUT.
ChosenRecipe find_path(const fs::path& folder, std::string_view word) {
  std::error_code ignored;
  const bool is_short = word.size() <= kLongestText;
  const fs::path whole(is_short ? word : std::string_view());
  if (fs::is_regular_file(whole, ignored) || base::is_pipe(whole)) return whole;
  const std::size_t colon = word.rfind(':');
  const bool split = colon != std::string_view::npos && colon + 1 < word.size();
  const fs::path file = word.substr(0, split ? colon : word.size());
  if (split && is_short && fs::is_regular_file(file, ignored)) {
    return {file, std::string(word.substr(colon + 1))};
  }
  throw base::ConfigError(
      text("recipe '{}' {}: give the path of one, a layout of it as PATH.yaml:LAYOUT, or a name "
           "from '{}' (WEFT_RECIPES sets that folder)",
           shown(word),
           is_short && fs::exists(file, ignored) ? "is not a file" : "does not exist",
           shown_folder(folder).string()));
}

// True if `path` leads to data: a file, a folder, or the two files of an indexed dataset.
bool leads_to_data(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored) || fs::exists(path.string() + ".idx", ignored);
}

// Resolves a recipe's relative data path: the current folder first, then the parent of the recipe's
// own folder, then of the extended recipes. A shipped recipe, or one that extends it, thus finds
// the source tree from anywhere.
std::string located(const std::string& path, const std::vector<fs::path>& recipes) {
  if (path.empty() || fs::path(path).is_absolute() || leads_to_data(path)) return path;
  for (const fs::path& recipe : recipes) {
    const fs::path beside = fs::absolute(recipe).lexically_normal().parent_path().parent_path();
    if (leads_to_data(beside / path)) return (beside / path).string();
  }
  return path;
}

std::vector<Finding> apply_all(const std::vector<Setting>& settings,
                               Config& config,
                               std::vector<std::string>& complaints) {
  std::vector<Finding> warnings;
  apply_meant(meant_settings(settings), config, warnings, complaints);
  return warnings;
}

std::vector<std::string> keys_of(const std::vector<Setting>& settings) {
  std::vector<std::string> keys;
  for (const Setting& setting : meant_settings(settings).settings) {
    keys.push_back(meant_key(setting.key));
  }
  return keys;
}

// Collects errors of the unused layouts.
void check_others(const Recipe& recipe,
                  std::string_view layout,
                  std::vector<std::string>& complaints) {
  for (const RecipeLayout& other : recipe.layouts) {
    if (other.name == (layout.empty() ? recipe.layout : layout)) continue;
    Config scratch;
    apply_all(other.settings, scratch, complaints);
  }
}

// "tiny" for the folder tiny-20261119-200443 or tiny-20261119-200443-2; other names stay.
std::string run_name(const fs::path& folder) {
  const std::string name = folder.filename().string();
  static const std::regex kTime("-[0-9]{8}-[0-9]{6}(-[0-9]+)?$");
  return std::regex_replace(name, kTime, "");
}

}  // namespace

// The config of a run folder has the name of that run.
std::string ChosenRecipe::name() const {
  if (layout.empty() && file.filename() == "config.yaml") {
    const std::string run = run_name(fs::absolute(file).lexically_normal().parent_path());
    if (!run.empty()) return run;
  }
  return layout.empty() ? file.stem().string() : file.stem().string() + "_" + layout;
}

Recipe load_recipe(const fs::path& file, const fs::path& folder) {
  std::vector<fs::path> chain;
  return load(file, folder, chain);
}

ChosenRecipe find_recipe(const fs::path& folder, std::string_view word) {
  if (is_path(word)) return find_path(folder, word);
  std::optional<ChosenRecipe> chosen = find_name(folder, word);
  // Megatron Bridge names a function: qwen3_235b_a22b_pretrain_config.
  constexpr std::string_view kFunction = "_config", kTask = "_pretrain";
  if (word.ends_with(kFunction) && (!chosen || !has_layout(*chosen))) {
    const std::string_view name = word.substr(0, word.size() - kFunction.size());
    const std::string_view model =
        name.ends_with(kTask) ? name.substr(0, name.size() - kTask.size()) : name;
    const std::optional<ChosenRecipe> known = find_name(folder, model);
    if (known && (known->layout.empty() || has_layout(*known))) chosen = known;
  }
  if (!chosen) refuse_name(folder, recipe_files(folder), word);
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

Config load_config(const ChosenRecipe& recipe, const fs::path& folder) {
  return load_with_findings(recipe, folder).config;
}

Config parse_config(const std::string& yaml, const std::string& named) {
  if (yaml.size() > kLargestConfig) {
    throw base::ConfigError(
        text("{}: the config has {} bytes, more than {}", named, yaml.size(), kLargestConfig));
  }
  const RecipeFile parsed = parse_recipe_file(yaml, named);
  if (!parsed.extends.empty() || !parsed.recipe.layouts.empty()) {
    throw base::ConfigError(
        text("{}: a resolved config extends nothing and has no layouts", named));
  }
  return config_of(parsed.recipe, "");
}

LoadedRecipe load_with_findings(const ChosenRecipe& recipe, const fs::path& folder) {
  Config config;
  std::vector<std::string> complaints;
  const Recipe loaded = load_recipe(recipe.file, folder);
  const std::vector<Setting> settings = settings_of(loaded, recipe.layout);
  std::vector<Finding> warnings = other_name_findings(settings);
  for (Finding& warning : apply_all(settings, config, complaints)) {
    warnings.push_back(std::move(warning));
  }
  check_others(loaded, recipe.layout, complaints);
  config.dataset.path = located(config.dataset.path, loaded.files);
  for (std::string& set : config.dataset.valid_data_path) {
    const std::size_t path = derive::path_begin(set);
    set = set.substr(0, path) + located(set.substr(path), loaded.files);
  }
  for (std::string& word : config.dataset.blend) {
    if (!base::parse_number(word)) word = located(word, loaded.files);
  }
  for (std::string& blend : config.dataset.blend_per_split) {
    std::optional<std::vector<std::string>> words = blend_words(blend);
    if (!words) continue;
    for (std::string& word : *words) {
      if (!base::parse_number(word)) word = located(word, loaded.files);
    }
    blend = blend_text(*words);
  }
  std::vector<std::string> keys = keys_of(settings);
  DataMeant data = settle_data(keys, config);
  for (const std::string& complaint : data.complaints) {
    complaints.push_back(text("{}: {}", recipe.file.string(), complaint));
  }
  if (!complaints.empty()) throw base::ConfigError(std::move(complaints));
  return {.config = std::move(config), .warnings = std::move(warnings), .keys = std::move(keys)};
}

}  // namespace weft::words
