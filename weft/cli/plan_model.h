// The model that a plan is for, by the name people give it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "weft/config/config.h"

namespace weft::cli {

struct PlanModel {
  std::string name;                        // of its recipe or file
  config::Config config;                   // without a layout
  std::optional<config::Config> own = {};  // with the layout that the recipe has itself
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
