// What a shell may complete after `weft`: commands and their options, keys, flags and their words.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace weft::cli {

// What may follow a command.
struct CommandWords {
  std::string name;                  // "check", "bench step"
  std::vector<std::string> options;  // of its own
  std::vector<std::string> first;    // of which one must follow: the benches, the shells
  bool takes_run = false;            // a recipe, keys and flags
};

// A name and the words that may follow it.
struct Choice {
  std::string name;  // "model.fp8", "--moe_a2a_overlap", "bench"
  std::vector<std::string> words;
};

using Table = std::vector<Choice>;

// Every command, and behind one that has commands of its own, those.
std::vector<CommandWords> commands_of(const CLI::App& program);

// The keys and flags that do not take just anything; the ids after --explain.
Table choices();
// "a.b=" of every key.
std::vector<std::string> keys();
// Those that every command with a run takes.
std::vector<std::string> flags();

}  // namespace weft::cli
