// A command: a file with a function add_<name>() that declares its options and its action, and a
// line in commands.def.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>

namespace weft::cli {

// Exit codes: success, failure of the run, wrong input. cli/terminal/interrupt.h has the codes of a
// run that a signal ended.
enum ExitCode : int { kGood = 0, kFailed = 1, kWrongInput = 2 };

// Action of the chosen command, run after parsing; returns the exit code. ConfigError and
// MissingInput end in kWrongInput, other errors in kFailed.
using Action = std::function<int()>;

// Makes `command` run `act` on its options when chosen.
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
