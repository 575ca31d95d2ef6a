// The model that a plan is for, by the name people give it.
#pragma once

#include <string>
#include <vector>

#include "weft/config/config.h"

namespace weft::cli {

// A layout that a recipe has itself.
struct RecipeRun {
  std::string name;  // "qwen3_30b_a3b_pretrain_16gpu_h100_bf16"; of the recipe as it is, its own
  config::Config config;
};

struct PlanModel {
  std::string name;       // of its recipe or file
  config::Config config;  // without a layout
  // The one that was asked for, or the recipe's own first and then the others; empty: it has none.
  std::vector<RecipeRun> own = {};
  // Of a Hugging Face model:
  std::string length = {};  // why model.seq_length is what it is; empty: the recipe says it
  std::vector<std::string> remarks = {};  // to warn of: what the shapes leave out
};

// A model's config without a layout, by the name of its recipe or as tables write it. ConfigError
// that lists the known ones.
PlanModel named_model(const std::string& name);

// The same by a word of the command line, which may be a path. A recipe's name as it is or as
// tables write it ("DeepSeek-V3", "llama3.1-405b"; a beginning where it fits one model alone), the
// path of a recipe, that of a Hugging Face config.json, or a recipe with one of its layouts, as
// `weft recipes` lists them. ConfigError that lists the known ones.
PlanModel find_plan_model(const std::string& word);

}  // namespace weft::cli
