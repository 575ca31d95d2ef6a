#include "weft/cli/plan/plan_model.h"

#include <algorithm>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/checkpoint/huggingface/huggingface_shapes.h"
#include "weft/cli/arguments.h"
#include "weft/plan/published/published.h"
#include "weft/words/model_folder.h"
#include "weft/words/recipe.h"

namespace weft::cli {
namespace {

namespace fs = std::filesystem;
using base::text;

// Config without the recipe's layout. The layout's optimizer settings stay, as its number formats
// are not part of a layout.
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

bool has_layout(const config::Config& config) {
  const config::ModelConfig& model = config.model;
  return model.tensor_model_parallel_size * model.pipeline_model_parallel_size *
                 model.context_parallel_size * model.expert_model_parallel_size >
             1 ||
         config.train.micro_batch_size > 1;
}

// `layout`: the requested one; empty: the recipe's own.
PlanModel of_recipe(words::Recipe recipe, const std::string& layout) {
  const std::string& chosen = layout.empty() ? recipe.layout : layout;
  config::Config own = words::config_of(recipe, chosen);
  PlanModel model{.name = recipe.name, .config = {}};
  if (!chosen.empty() || has_layout(own)) model.own.push_back({recipe.name, std::move(own)});
  for (const words::RecipeLayout& other : recipe.layouts) {
    if (!layout.empty() || other.name == chosen) continue;
    model.own.push_back({recipe.full_name(other), words::config_of(recipe, other.name)});
  }
  model.config = without_layout(std::move(recipe));
  return model;
}

std::vector<std::string> recipe_names() {
  std::vector<std::string> names;
  for (const fs::path& file : words::recipe_files(recipes_folder())) {
    names.push_back(file.stem().string());
  }
  return names;
}

// Models without small twins and without further recipes of the same model.
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

// Recipe with a layout: "qwen3_30b_a3b:pretrain_16gpu_h100_bf16", or a name for both.
std::optional<words::ChosenRecipe> layout_named(const fs::path& folder, const std::string& word) {
  const std::string name = word.substr(0, word.find(':'));
  if (plan::model_meant(name, recipe_names()).empty() || name != word) {
    try {
      words::ChosenRecipe chosen = words::find_recipe(folder, word);
      if (!chosen.layout.empty()) return chosen;
    } catch (const base::ConfigError&) {  // a model by its name in a table
    }
  }
  return std::nullopt;
}

words::Recipe recipe_named(const std::string& word) {
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
  return words::load_recipe(folder / (name + ".yaml"), folder);
}

PlanModel from_huggingface(const fs::path& file) {
  checkpoint::ModelShapes shapes = checkpoint::read_model_shapes(file);
  PlanModel model{.name = file.string(), .config = {}};
  model.config.model = std::move(shapes.model);
  model.length = text("the usual length up to max_position_embeddings={}; --seq=N for another",
                      model.config.model.max_position_embeddings.value_or(0));
  model.remarks = std::move(shapes.remarks);
  return model;
}

}  // namespace

PlanModel find_plan_model(const std::string& word) {
  const fs::path folder = recipes_folder();
  if (const auto file = words::model_config_file(folder, word)) return from_huggingface(*file);
  if (word.find('/') != std::string::npos || word.ends_with(".yaml")) {
    const words::ChosenRecipe chosen = words::find_recipe(folder, word);
    return of_recipe(words::load_recipe(chosen.file, folder), chosen.layout);
  }
  if (const std::optional<words::ChosenRecipe> chosen = layout_named(folder, word)) {
    return of_recipe(words::load_recipe(chosen->file, folder), chosen->layout);
  }
  return of_recipe(recipe_named(word), "");
}

PlanModel named_model(const std::string& word) {
  words::Recipe recipe = recipe_named(word);
  return {.name = recipe.name, .config = without_layout(std::move(recipe))};
}

}  // namespace weft::cli
