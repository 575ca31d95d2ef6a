// weft recipes: the named configs, and the layouts of one of them.
#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/cli/arguments.h"
#include "weft/cli/command.h"
#include "weft/cli/judge/recipes_start.h"
#include "weft/cli/output.h"
#include "weft/cli/plan/layout_text.h"
#include "weft/derive/derived.h"
#include "weft/derive/pipeline.h"
#include "weft/words/recipe.h"

namespace weft::cli {
namespace {

using base::text;
using config::Config;
using words::Recipe;

struct RecipesOptions {
  Format format = Format::Text;
  std::string name;  // empty: all
  bool start = false;
};

// Visits every recipe of the folder; ConfigError with the errors of all that do not load.
template <typename Visit>
void for_each_recipe(const Visit& visit) {
  std::vector<std::string> complaints;
  for (const std::filesystem::path& file : words::recipe_files(recipes_folder())) {
    try {
      visit(words::load_recipe(file, recipes_folder()));
    } catch (const base::ConfigError& error) {
      const auto& more = error.complaints();
      complaints.insert(complaints.end(), more.begin(), more.end());
    }
  }
  if (!complaints.empty()) throw base::ConfigError(std::move(complaints));
}

// The recipe itself, then its layouts.
std::vector<Runnable> runnables_of(const Recipe& recipe) {
  std::vector<Runnable> all;
  all.push_back({recipe.name, recipe.summary, words::config_of(recipe, {})});
  for (const words::RecipeLayout& layout : recipe.layouts) {
    all.push_back({.name = recipe.full_name(layout),
                   .summary = text("{}: {}", recipe.name, layout.name),
                   .config = words::config_of(recipe, layout.name)});
  }
  return all;
}

Recipe chosen_recipe(const std::string& name) {
  const std::filesystem::path folder = recipes_folder();
  return words::load_recipe(words::find_recipe(folder, name).file, folder);
}

void show_all_text() {
  std::vector<Recipe> all;
  std::vector<std::int64_t> ranks;
  for_each_recipe([&](Recipe recipe) {
    ranks.push_back(derive::layout_of(words::config_of(recipe, {})).world);
    all.push_back(std::move(recipe));
  });
  std::size_t width = 4;
  for (const Recipe& recipe : all) width = std::max(width, recipe.name.size());
  print_text(text("{:<{}}  ranks  layouts  summary\n", "name", width));
  for (std::size_t i = 0; i < all.size(); ++i) {
    print_text(text("{:<{}}  {:>5}  {:>7}  {}\n",
                    all[i].name,
                    width,
                    ranks[i],
                    all[i].layouts.size(),
                    all[i].summary));
  }
  print_text("`weft recipes NAME` lists the layouts of one.\n");
}

void show_one_text(const Recipe& recipe) {
  const std::vector<Runnable> all = runnables_of(recipe);
  std::size_t width = 4;
  for (const Runnable& each : all) width = std::max(width, each.name.size());
  print_text(text("{}\n\n{:<{}}  ranks  tp  pp  vpp  cp   ep  MBS    GBS\n",
                  recipe.summary,
                  "name",
                  width));
  for (const Runnable& each : all) {
    const grid::Layout layout = derive::layout_of(each.config);
    print_text(text("{:<{}}  {:>5}  {:>2}  {:>2}  {:>3}  {:>2}  {:>3}  {:>3}  {:>5}\n",
                    each.name,
                    width,
                    layout.world,
                    layout.tp,
                    layout.pp,
                    derive::virtual_stages(each.config.model),
                    layout.cp,
                    layout.ep,
                    each.config.train.micro_batch_size,
                    each.config.train.global_batch_size));
  }
  print_text(text("{}; MBS, GBS: sequences of a micro-batch and of a step\n", kAxisLegend));
  if (!recipe.layout.empty()) {
    print_text(text("\n{} alone means {}_{}.\n", recipe.name, recipe.name, recipe.layout));
  }
}

void show_json(const std::vector<Runnable>& all) {
  base::Json list = base::Json::array();
  for (const Runnable& each : all) {
    list.push_back({{"name", each.name},
                    {"summary", each.summary},
                    {"gpus", derive::layout_of(each.config).world}});
  }
  print_json(base::Json{{"recipes", std::move(list)}});
}

std::vector<Runnable> every_runnable() {
  std::vector<Runnable> all;
  for_each_recipe([&](const Recipe& recipe) {
    std::vector<Runnable> more = runnables_of(recipe);
    std::ranges::move(more, std::back_inserter(all));
  });
  return all;
}

// The named recipe with its layouts, or the single layout that the name means.
std::vector<Runnable> named_runnables(const std::string& name) {
  const words::ChosenRecipe chosen = words::find_recipe(recipes_folder(), name);
  std::vector<Runnable> all = runnables_of(words::load_recipe(chosen.file, recipes_folder()));
  if (chosen.layout.empty()) return all;
  std::erase_if(all, [&](const Runnable& each) { return each.name != chosen.name(); });
  return all;
}

int run_recipes(const RecipesOptions& options) {
  if (options.start) {
    return start_recipes(options.name.empty() ? every_runnable() : named_runnables(options.name),
                         options.format);
  }
  switch (options.format) {
    case Format::Text:
      options.name.empty() ? show_all_text() : show_one_text(chosen_recipe(options.name));
      break;
    case Format::Json:
      show_json(options.name.empty() ? every_runnable()
                                     : runnables_of(chosen_recipe(options.name)));
      break;
  }
  return kGood;
}

}  // namespace

void add_recipes(CLI::App& program, Action& chosen) {
  CLI::App* command =
      program.add_subcommand("recipes", "list the recipes, or the layouts of one; try which start");
  auto options = std::make_shared<RecipesOptions>();
  command->add_option("NAME", options->name, "a recipe whose layouts to list");
  add_format(*command, options->format);
  command->add_flag("--start",
                    options->start,
                    "try whether they start: rank 0 of a small twin trains two steps of each");
  command->footer(
      "Example: weft recipes qwen3_30b_a3b\nThe folder is WEFT_RECIPES where that is set.");
  on_chosen(*command, chosen, std::move(options), run_recipes);
}

}  // namespace weft::cli
