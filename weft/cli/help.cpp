#include "weft/cli/help.h"

#include "weft/base/text.h"

namespace weft::cli {

std::string HelpFormat::make_usage(const CLI::App* app, std::string name) const {
  std::string line = base::text("Usage: {}", name);
  if (!app->get_subcommands({}).empty()) line += " COMMAND";
  if (!words_.empty()) line += " " + words_;
  for (const CLI::Option* option : app->get_options()) {
    if (option->get_positional()) line += " " + make_option_usage(option);
  }
  return line + " [OPTIONS]\n";
}

// Shows -h, which the program accepts everywhere (app.cpp), though CLI11 only knows --help.
std::string HelpFormat::make_option_name(const CLI::Option* option, bool is_positional) const {
  const std::string name = CLI::Formatter::make_option_name(option, is_positional);
  return name == "--help" ? "-h,--help" : name;
}

// Removes "TEXT:", which CLI11 writes before FILE for existing files.
std::string HelpFormat::make_option_opts(const CLI::Option* option) const {
  std::string told = CLI::Formatter::make_option_opts(option);
  if (told.starts_with(" TEXT:")) told.erase(1, std::string_view("TEXT:").size());
  return told;
}

}  // namespace weft::cli
