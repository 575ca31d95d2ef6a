// One recipe file as written; recipe.h resolves its extends.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "weft/words/recipe.h"

namespace weft::words {

struct RecipeFile {
  Recipe recipe;        // content of this file only
  std::string extends;  // empty: none
  std::string where;    // place of `extends`: "tiny.yaml:3"
};

// ConfigError with file and line of every malformed part.
RecipeFile read_recipe_file(const std::filesystem::path& file);
// Variant for the content; `file` is for errors.
RecipeFile parse_recipe_file(const std::string& content, const std::filesystem::path& file);

}  // namespace weft::words
