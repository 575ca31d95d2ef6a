#include "weft/cli/plan_model.h"

#include <algorithm>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/text.h"
#include "weft/checkpoint/huggingface_config.h"
#include "weft/cli/arguments.h"
#include "weft/plan/published.h"
#include "weft/words/recipe.h"

namespace weft::cli {
namespace {

namespace fs = std::filesystem;
using base::text;

// A config.json is far smaller.
constexpr std::size_t kMostConfigBytes = 1 << 20;

// Without the layout that it says, of which the optimizer stays: in what formats it keeps its state
// is no question of the layout.
config::Config without_layout(words::Recipe recipe) {
  const config::OptimizerConfig own = words::config_of(recipe, "").optimizer;
  recipe.layout.clear();
  config::Config config = words::config_of(recipe, "");
  config::OptimizerConfig& optimizer = config.optimizer;
  optimizer.use_precision_aware_optimizer = own.use_precision_aware_optimizer;
  optimizer.exp_avg_dtype = own.exp_avg_dtype;
  optimizer.exp_avg_sq_dtype = own.exp_avg_sq_dtype;
  optimizer.main_grads_dtype = own.main_grads_dtype;
  optimizer.main_params_dtype = own.main_params_dtype;
  optimizer.store_param_remainders = own.store_param_remainders;
  return config;
}

std::vector<std::string> recipe_names() {
  std::vector<std::string> names;
  for (const fs::path& file : words::recipe_files(recipes_folder())) {
    names.push_back(file.stem().string());
  }
  return names;
}

// Without small twins and other recipes of a model that has one already.
std::vector<std::string> model_names() {
  const std::vector<std::string> names = recipe_names();
  std::vector<std::string> models;
  std::ranges::copy_if(names, std::back_inserter(models), [&](const std::string& name) {
    return std::ranges::none_of(names, [&](const std::string& other) {
      return name.starts_with(other + "_");
    });
  });
  return models;
}

PlanModel from_huggingface(const fs::path& file) {
  config::Config config;
  const std::string content = base::read_text(file, kMostConfigBytes);
  config.model = checkpoint::parse_huggingface_config(content, file.string()).model;
  return {.name = file.string(), .config = std::move(config)};
}

}  // namespace

PlanModel find_plan_model(const std::string& word) {
  const fs::path folder = recipes_folder();
  std::error_code ignored;
  if (word.ends_with(".json")) return from_huggingface(word);
  const fs::path inside = fs::path(word) / "config.json";
  if (fs::is_regular_file(inside, ignored)) return from_huggingface(inside);
  if (word.find('/') != std::string::npos || word.ends_with(".yaml")) {
    words::Recipe recipe = words::load_recipe(words::find_recipe(folder, word).file, folder);
    return {.name = recipe.name, .config = without_layout(std::move(recipe))};
  }
  return named_model(word);
}

PlanModel named_model(const std::string& word) {
  const fs::path folder = recipes_folder();
  std::string name = plan::model_meant(word, recipe_names());
  if (name.empty()) name = plan::model_meant(word, model_names());
  if (name.empty()) {
    throw base::ConfigError(
        text("unknown model '{}': known are {}; or give the path of a recipe "
             "or of a Hugging Face config.json or its folder",
             base::shown(word),
             fmt::join(model_names(), ", ")));
  }
  words::Recipe recipe = words::load_recipe(folder / (name + ".yaml"), folder);
  return {.name = name, .config = without_layout(std::move(recipe))};
}

}  // namespace weft::cli
