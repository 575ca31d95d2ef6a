// weft completion: shell scripts made from the commands, the keys and the flags.
#include "weft/cli/command.h"
#include "weft/cli/output.h"
#include "weft/cli/shell/completion_scripts.h"
#include "weft/cli/shell/completion_words.h"

namespace weft::cli {

void add_completion(CLI::App& program, Action& chosen) {
  CLI::App* command = program.add_subcommand(
      "completion",
      "print a script that lets a shell complete commands, keys, values, flags and recipes");
  auto shell = std::make_shared<std::string>();
  command->add_option("SHELL", *shell, "bash, zsh or fish");
  command->footer("Example: weft completion bash >~/.local/share/bash-completion/completions/weft");
  command->callback([&chosen, &program, shell] {
    chosen = [&program, shell] {
      print_text(completion_script(*shell, commands_of(program)));
      return kGood;
    };
  });
}

}  // namespace weft::cli
