// Help format: the usage line names the words besides the options.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace weft::cli {

class HelpFormat final : public CLI::Formatter {
 public:
  // `words`: words after the command's name, such as "[RECIPE] [a.b=c ...]".
  explicit HelpFormat(std::string words = {}) : words_(std::move(words)) {}

  std::string make_usage(const CLI::App* app, std::string name) const override;
  std::string make_option_name(const CLI::Option* option, bool is_positional) const override;
  std::string make_option_opts(const CLI::Option* option) const override;

 private:
  std::string words_;
};

}  // namespace weft::cli
