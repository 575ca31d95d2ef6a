// Recipes: named configs in YAML, `section: {key: value}` with an optional `summary` of one line.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/config/config.h"
#include "weft/config/overrides.h"

namespace weft::config {

struct Recipe {
  std::string name;  // the file's name without .yaml
  std::string summary;
  std::vector<Setting> settings;
};

// Reads the structure of a recipe; ConfigError names file and line of everything malformed. Keys
// and values are judged when the settings are applied.
Recipe load_recipe(const std::filesystem::path& file);

// A name from `folder`, or a path (a word with '/' or ending in .yaml). ConfigError when absent.
std::filesystem::path find_recipe(const std::filesystem::path& folder, std::string_view word);

// The recipe files of a folder, by name.
std::vector<std::filesystem::path> recipe_files(const std::filesystem::path& folder);

// Defaults, then the recipe, then the overrides; ConfigError with every complaint of both. Whether
// the numbers make sense together is validate.h's question. A relative dataset.path of the recipe,
// not of an override, is also looked for beside the folder of the recipe.
Config resolve(const std::optional<std::filesystem::path>& recipe,
               std::span<const std::string> overrides);

}  // namespace weft::config
