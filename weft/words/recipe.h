// Recipes: named configs in YAML. A file is a map of sections, `section: {key: value}`, with an
// optional one-line `summary` and these keys:
//   extends: NAME_OR_PATH   start from that recipe (a name is searched beside the file, then in
//                           the recipes folder)
//   layouts: {NAME: {...}}  variants for numbers and kinds of GPUs, each a map of sections
//   layout: NAME            default layout
// Settings of a layout override those of its file, which override those of the extended files. A
// file x.yaml is run as `x`, its layout y as `x_y`.
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
  std::string name;  // file name without .yaml
  std::string summary;
  std::vector<config::Setting> settings;     // settings of the extended files come first
  std::vector<RecipeLayout> layouts;         // in file order
  std::string layout;                        // default layout; empty: none
  std::vector<std::filesystem::path> files;  // its own, then the extended files

  // "qwen3_30b_a3b_pretrain_16gpu_h100_bf16"
  std::string full_name(const RecipeLayout& of) const { return name + "_" + of.name; }
};

// Target of a name: a file, and one of its layouts if the name has one.
struct ChosenRecipe {
  ChosenRecipe(std::filesystem::path the_file, std::string the_layout = {})
      : file(std::move(the_file)), layout(std::move(the_layout)) {}

  std::string name() const;  // as asked for

  std::filesystem::path file;
  std::string layout;  // empty: the file's default
  bool operator==(const ChosenRecipe&) const = default;
};

// Reads the structure of a recipe and of the files it extends, searched beside the file and then in
// `folder` (empty: not searched). ConfigError with file and line of every malformed part. Keys and
// values are checked when the settings are applied.
Recipe load_recipe(const std::filesystem::path& file, const std::filesystem::path& folder = {});

// Finds the name of a file or of a layout in `folder`, or a path (a word with '/' or ending in
// .yaml). Both may have `:LAYOUT` appended. ConfigError if there is no such file. The file is not
// read: settings_of() and load_config() check the layout.
ChosenRecipe find_recipe(const std::filesystem::path& folder, std::string_view word);

// Recipe files of a folder, by name.
std::vector<std::filesystem::path> recipe_files(const std::filesystem::path& folder);

// Settings of a recipe with a layout; empty: its default layout. ConfigError for an unknown layout.
std::vector<config::Setting> settings_of(const Recipe& recipe, std::string_view layout);

// Config of defaults and the recipe; ConfigError with every complaint.
config::Config config_of(const Recipe& recipe, std::string_view layout);

// Variant that reads the file. Rules check the combination of values. A relative data path is also
// searched beside the folder of the recipe, then of the extended recipes. Unused layouts are
// checked for keys and types too. `folder`: as in load_recipe().
config::Config load_config(const ChosenRecipe& recipe, const std::filesystem::path& folder = {});

// Parses a resolved config in YAML (config::to_yaml), which refers to no other file; `named` is for
// errors.
config::Config parse_config(const std::string& yaml, const std::string& named);

// Result with warnings about key names (rule C4), and the set keys.
struct LoadedRecipe {
  config::Config config;
  std::vector<config::Finding> warnings;
  std::vector<std::string> keys;
};
LoadedRecipe load_with_findings(const ChosenRecipe& recipe,
                                const std::filesystem::path& folder = {});

}  // namespace weft::words
