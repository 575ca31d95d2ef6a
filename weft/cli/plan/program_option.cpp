#include "weft/cli/plan/program_option.h"

#include <vector>

namespace weft::cli {

CLI::Option* add_program_option(CLI::App& command, std::string& word) {
  std::vector<std::string> words;
  for (int i = 0; i < plan::kPrograms; ++i) {
    words.emplace_back(plan::word(static_cast<plan::Program>(i)));
  }
  return command
      .add_option(
          "--program",
          word,
          "whose program is priced: megatron (Megatron Bridge) or weft; default: weft where "
          "weft train can do the run on one card that it was measured on")
      ->check(CLI::IsMember(words))
      ->type_name("megatron|weft");
}

std::optional<plan::Program> asked_program(const std::string& word) {
  for (int i = 0; i < plan::kPrograms; ++i) {
    const auto program = static_cast<plan::Program>(i);
    if (word == plan::word(program)) return program;
  }
  return std::nullopt;
}

}  // namespace weft::cli
