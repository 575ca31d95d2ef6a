// weft recipes: the named configs.
#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/cli/arguments.h"
#include "weft/cli/command.h"
#include "weft/cli/output.h"
#include "weft/config/derived.h"
#include "weft/config/recipe.h"

namespace weft::cli {
namespace {

struct RecipesOptions {
  Format format = Format::Text;
};

struct Row {
  std::string name;
  std::string summary;
  std::int64_t ranks;
};

// Every recipe of the folder; ConfigError with the complaints of all that do not load.
std::vector<Row> rows() {
  std::vector<Row> all;
  std::vector<std::string> complaints;
  for (const std::filesystem::path& file : config::recipe_files(recipes_folder())) {
    try {
      const config::Recipe recipe = config::load_recipe(file);
      const std::int64_t ranks = config::layout_of(config::resolve(file, {})).world;
      all.push_back({recipe.name, recipe.summary, ranks});
    } catch (const base::ConfigError& error) {
      const auto& more = error.complaints();
      complaints.insert(complaints.end(), more.begin(), more.end());
    }
  }
  if (!complaints.empty()) throw base::ConfigError(std::move(complaints));
  return all;
}

void show_text(const std::vector<Row>& all) {
  std::size_t width = 4;
  for (const Row& row : all) width = std::max(width, row.name.size());
  print_text(base::text("{:<{}}  ranks  summary\n", "name", width));
  for (const Row& row : all) {
    print_text(base::text("{:<{}}  {:>5}  {}\n", row.name, width, row.ranks, row.summary));
  }
}

void show_json(const std::vector<Row>& all) {
  base::Json list = base::Json::array();
  for (const Row& row : all) {
    list.push_back({{"name", row.name}, {"summary", row.summary}, {"gpus", row.ranks}});
  }
  print_json(base::Json{{"recipes", std::move(list)}});
}

int run_recipes(const RecipesOptions& options) {
  switch (options.format) {
    case Format::Text:
      show_text(rows());
      break;
    case Format::Json:
      show_json(rows());
      break;
  }
  return kGood;
}

}  // namespace

void add_recipes(CLI::App& program, Action& chosen) {
  CLI::App* command = program.add_subcommand("recipes", "list the recipes");
  auto options = std::make_shared<RecipesOptions>();
  add_format(*command, options->format);
  command->footer("Example: weft recipes --json\nThe folder is WEFT_RECIPES where that is set.");
  on_chosen(*command, chosen, std::move(options), run_recipes);
}

}  // namespace weft::cli
