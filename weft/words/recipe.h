// Recipes: named configs in YAML. A file is a map of sections, `section: {key: value}`, with an
// optional `summary` of one line, and it may
//   extends: NAME_OR_PATH   start from what that name runs (a name is looked for beside the file,
//                           then in the recipes folder)
//   layouts: {NAME: {...}}  hold variants for numbers and kinds of GPUs, each a map of sections
//   layout: NAME            say which of them runs when none is asked for
// The settings of a layout come after those of its file, which come after those it extends. A file
// x.yaml is run as `x`, its layout y as `x_y`.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/config/config.h"
#include "weft/config/setting.h"

namespace weft::words {

struct RecipeLayout {
  std::string name;
  std::vector<config::Setting> settings;
};

struct Recipe {
  std::string name;  // the file's name without .yaml
  std::string summary;
  std::vector<config::Setting> settings;  // what it extends comes first
  std::vector<RecipeLayout> layouts;      // in the order of the file
  std::string layout;  // the one that runs when none is asked for; empty: none does
  std::vector<std::filesystem::path> files;  // its own, then those that it extends

  // "qwen3_30b_a3b_pretrain_16gpu_h100_bf16"
  std::string full_name(const RecipeLayout& of) const { return name + "_" + of.name; }
};

// What a name means: a file, and one of its layouts where the name asks for one.
struct ChosenRecipe {
  ChosenRecipe(std::filesystem::path the_file, std::string the_layout = {})
      : file(std::move(the_file)), layout(std::move(the_layout)) {}

  std::string name() const;  // as it is asked for

  std::filesystem::path file;
  std::string layout;  // empty: the one the file says
  bool operator==(const ChosenRecipe&) const = default;
};

// Reads the structure of a recipe and of those it extends, which are looked for beside the file and
// then in `folder`, unless that is empty. ConfigError names file and line of everything malformed.
// Keys and values are judged when the settings are applied.
Recipe load_recipe(const std::filesystem::path& file, const std::filesystem::path& folder = {});

// A name from `folder`, of a file or of a layout, or a path (a word with '/' or ending in .yaml),
// after which `:LAYOUT` may stand. ConfigError when there is no such file. It is not read: whether
// it has the layout, settings_of() and load_config() say.
ChosenRecipe find_recipe(const std::filesystem::path& folder, std::string_view word);

// The recipe files of a folder, by name.
std::vector<std::filesystem::path> recipe_files(const std::filesystem::path& folder);

// The settings of a recipe with a layout of it; empty: the one the recipe says. ConfigError when
// there is no such layout.
std::vector<config::Setting> settings_of(const Recipe& recipe, std::string_view layout);

// Defaults, then the recipe; ConfigError with every complaint.
config::Config config_of(const Recipe& recipe, std::string_view layout);

// The same of a file, read now. Whether the numbers make sense together is the rules' question. A
// relative path of the data is also looked for beside the folder of the recipe, then of those that
// it extends. The layouts that do not run are held against the keys and types too. `folder` is as
// load_recipe()'s.
config::Config load_config(const ChosenRecipe& recipe, const std::filesystem::path& folder = {});

// A resolved config from its YAML (config::to_yaml), which names no other file; `named` is for
// errors.
config::Config parse_config(const std::string& yaml, const std::string& named);

// The same with what there is to say of its keys' names (rule C4), and the keys that it sets.
struct LoadedRecipe {
  config::Config config;
  std::vector<config::Finding> warnings;
  std::vector<std::string> keys;
};
LoadedRecipe load_with_findings(const ChosenRecipe& recipe,
                                const std::filesystem::path& folder = {});

}  // namespace weft::words
