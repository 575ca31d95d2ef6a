// Model of a plan by its common name.
#pragma once

#include <string>
#include <vector>

#include "weft/config/config.h"

namespace weft::cli {

// Layout that a recipe brings.
struct RecipeRun {
  std::string name;  // "qwen3_30b_a3b_pretrain_16gpu_h100_bf16"; the plain recipe has its own name
  config::Config config;
  bool is_line = false;  // pasted words
};

struct PlanModel {
  std::string name;       // recipe or file
  config::Config config;  // without a layout
  // Requested layout, or the recipe's own and then its others; empty: none.
  std::vector<RecipeRun> own = {};
  // For a Hugging Face model:
  std::string length = {};                // reason for model.seq_length; empty: from the recipe
  std::vector<std::string> remarks = {};  // warnings: parts missing in the shapes
};

// Model config without a layout, by the name of its recipe or as written in tables. ConfigError
// with the known names.
PlanModel named_model(const std::string& name);

// Variant for a command-line word, which may be a path. Accepts a recipe's name, also as written in
// tables ("DeepSeek-V3", "llama3.1-405b") or as a unique prefix; the path of a recipe or of a
// Hugging Face config.json; a recipe with one of its layouts, as `weft recipes` lists them.
// ConfigError with the known names.
PlanModel find_plan_model(const std::string& word);

}  // namespace weft::cli
