// weft config: every key of a recipe or an override.
#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/cli/arguments.h"
#include "weft/cli/command.h"
#include "weft/cli/output.h"
#include "weft/config/field.h"
#include "weft/config/key_table.h"

namespace weft::cli {
namespace {

enum class Page { Text, JsonText, Markdown };

struct ConfigOptions {
  Page page = Page::Text;
  std::string key;  // a key or a part of one
};

base::Json json_reference(const std::string& part) {
  base::Json keys = base::Json::array();
  const config::Config defaults;
  for (const config::Field& field : config::fields()) {
    if (field.key.find(part) == std::string::npos) continue;
    keys.push_back({{"key", field.key},
                    {"default", field.get(defaults)},
                    {"type", field.type},
                    {"meaning", field.meaning},
                    {"unit", field.unit}});
  }
  return {{"keys", std::move(keys)}};
}

int run_config(const ConfigOptions& options) {
  const bool is_known = std::ranges::any_of(config::fields(), [&](const config::Field& field) {
    return field.key.find(options.key) != std::string::npos;
  });
  if (!is_known) {
    throw base::ConfigError(base::text("no key has '{}' in its name; weft config lists them",
                                       base::shown(options.key)));
  }
  switch (options.page) {
    case Page::Text:
      print_text(config::text_reference(options.key));
      break;
    case Page::JsonText:
      print_json(json_reference(options.key));
      break;
    case Page::Markdown:
      print_text(config::markdown_reference());
      break;
  }
  return kGood;
}

}  // namespace

void add_config(CLI::App& program, Action& chosen) {
  CLI::App* command =
      program.add_subcommand("config", "list every config key, its default and its meaning");
  auto options = std::make_shared<ConfigOptions>();
  ConfigOptions* page = options.get();
  CLI::Option* key =
      command->add_option("KEY", options->key, "only the keys with this in their name");
  CLI::Option* json = command->add_flag_callback(
      "--json",
      [page] { page->page = Page::JsonText; },
      "print one JSON object");
  command
      ->add_flag_callback(
          "--markdown",
          [page] { page->page = Page::Markdown; },
          "print docs/config.md")
      ->excludes(json)
      ->excludes(key);
  command->footer(
      "Example: weft config moe_router\nA key is set in a recipe or as a.b=c on a command line.");
  on_chosen(*command, chosen, std::move(options), run_config);
}

}  // namespace weft::cli
