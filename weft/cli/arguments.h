// How commands take `[RECIPE] [a.b=c ...] [--json]`.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>
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

// WEFT_RECIPES where set, else the folder of the source tree the program was built from.
std::filesystem::path recipes_folder();

}  // namespace weft::cli
