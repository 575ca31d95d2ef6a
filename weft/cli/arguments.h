// How commands take `[RECIPE] [a.b=c ...] [--json]`.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/config/config.h"

namespace weft::cli {

enum class Format { Text, Json };

// --json
void add_format(CLI::App& command, Format& format);

struct RunArguments {
  std::vector<std::string> words;  // the positionals: an override has a '=', a recipe has none
  Format format = Format::Text;
};

// Adds the positionals and --json, and a help text that ends in `example`.
void add_run_arguments(CLI::App& command, RunArguments& arguments, const std::string& example);

struct Run {
  std::string recipe;  // its name; empty: none was given
  config::Config config;
};

// The config the words ask for, not validated. ConfigError when they are wrong.
Run resolve(const RunArguments& arguments);
// The same with a recipe for those who name none.
Run resolve_or(RunArguments arguments, const std::string& default_recipe);

// ConfigError for every override whose key is not among `allowed`, or is among `refused`: something
// else decides it, as `reason` says, and nothing the user types is ignored.
void allow_only(const std::vector<std::string>& words,
                std::span<const std::string_view> allowed,
                const std::string& reason);
void refuse_keys(const std::vector<std::string>& words,
                 std::span<const std::string_view> refused,
                 const std::string& reason);

// WEFT_RECIPES where set, else the folder of the source tree the program was built from.
std::filesystem::path recipes_folder();

}  // namespace weft::cli
