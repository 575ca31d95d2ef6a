// One recipe file as it is written; recipe.h follows what it extends.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "weft/words/recipe.h"

namespace weft::words {

struct RecipeFile {
  Recipe recipe;        // what this file says, and nothing else
  std::string extends;  // empty: nothing
  std::string where;    // of `extends`: "tiny.yaml:3"
};

// ConfigError names file and line of everything malformed.
RecipeFile read_recipe_file(const std::filesystem::path& file);
// The same of its content; `file` is for errors.
RecipeFile parse_recipe_file(const std::string& content, const std::filesystem::path& file);

}  // namespace weft::words
