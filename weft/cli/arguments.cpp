#include "weft/cli/arguments.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/config/recipe.h"

namespace weft::cli {

void add_format(CLI::App& command, Format& format) {
  command.add_flag_callback(
      "--json",
      [&format] { format = Format::Json; },
      "print one JSON object and nothing else on standard output");
}

void add_run_arguments(CLI::App& command, RunArguments& arguments, const std::string& example) {
  command.add_option("RECIPE", arguments.words, "a recipe (a name or a path) and overrides a.b=c")
      ->type_name("[a.b=c ...]");
  add_format(command, arguments.format);
  command.footer(base::text(
      "Example: {}\nEvery key, its default and meaning: weft config\nRecipes: weft recipes",
      example));
}

Run resolve(const RunArguments& arguments) {
  std::optional<std::string> recipe;
  std::vector<std::string> overrides;
  for (const std::string& word : arguments.words) {
    if (word.find('=') != std::string::npos) {
      overrides.push_back(word);
    } else if (recipe) {
      throw base::ConfigError(
          base::text("two recipes, '{}' and '{}': give one; an override is written a.b=c",
                     *recipe,
                     word));
    } else {
      recipe = word;
    }
  }
  if (!recipe) return {.recipe = {}, .config = config::resolve(std::nullopt, overrides)};
  const config::ChosenRecipe chosen = config::find_recipe(recipes_folder(), *recipe);
  return {.recipe = chosen.name(), .config = config::resolve(chosen, overrides)};
}

Run resolve_or(RunArguments arguments, const std::string& default_recipe) {
  const auto is_recipe = [](const std::string& word) {
    return word.find('=') == std::string::npos;
  };
  if (std::ranges::none_of(arguments.words, is_recipe)) {
    arguments.words.insert(arguments.words.begin(), default_recipe);
  }
  return resolve(arguments);
}

namespace {

template <typename Refuses>
void refuse_if(const std::vector<std::string>& words,
               const std::string& reason,
               const Refuses& refuses) {
  std::vector<std::string> complaints;
  for (const std::string& word : words) {
    const std::string key = word.substr(0, word.find('='));
    if (key != word && refuses(key)) {
      complaints.push_back(base::text("{}: {}: leave it out", word, reason));
    }
  }
  if (!complaints.empty()) throw base::ConfigError(std::move(complaints));
}

bool is_among(std::span<const std::string_view> keys, std::string_view key) {
  return std::ranges::find(keys, key) != keys.end();
}

}  // namespace

void allow_only(const std::vector<std::string>& words,
                std::span<const std::string_view> allowed,
                const std::string& reason) {
  refuse_if(words, reason, [&](const std::string& key) { return !is_among(allowed, key); });
}

void refuse_keys(const std::vector<std::string>& words,
                 std::span<const std::string_view> refused,
                 const std::string& reason) {
  refuse_if(words, reason, [&](const std::string& key) { return is_among(refused, key); });
}

std::filesystem::path recipes_folder() {
  const char* chosen = std::getenv("WEFT_RECIPES");
  return chosen != nullptr && *chosen != '\0' ? chosen : WEFT_RECIPES_FOLDER;
}

}  // namespace weft::cli
