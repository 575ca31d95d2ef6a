// What a command is: a file with one function add_<name>() that declares its options and how it
// runs, and a line in commands.def.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>

namespace weft::cli {

// Exit codes: done and good; ran and failed; the user's input is wrong. A run that a signal ended
// has that of interrupt.h.
enum ExitCode : int { kGood = 0, kFailed = 1, kWrongInput = 2 };

// What the chosen command does once the command line is parsed; gives the exit code. It may throw:
// ConfigError and MissingInput end in kWrongInput, any other error in kFailed.
using Action = std::function<int()>;

// Makes `command`, when chosen, run `act` on its options.
template <typename Options>
void on_chosen(CLI::App& command,
               Action& chosen,
               std::shared_ptr<Options> options,
               int (*act)(const Options&)) {
  command.callback([&chosen, options = std::move(options), act] {
    chosen = [options, act] { return act(*options); };
  });
}

#define WEFT_COMMAND(name) void add_##name(CLI::App& program, Action& chosen);
#include "weft/cli/commands.def"
#undef WEFT_COMMAND

}  // namespace weft::cli
