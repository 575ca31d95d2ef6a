// Completions after `weft`: commands with options, keys, flags and their values.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace weft::cli {

// Completions of a command.
struct CommandWords {
  std::string name;                  // "check", "bench step"
  std::vector<std::string> options;  // its own options
  std::vector<std::string> first;    // words, one of which must follow: the benches, the shells
  bool takes_run = false;            // takes a recipe, keys and flags
};

// Name with the words that may follow it.
struct Choice {
  std::string name;  // "model.fp8", "--moe_a2a_overlap", "bench"
  std::vector<std::string> words;
};

using Table = std::vector<Choice>;

// All commands; commands with subcommands are followed by these.
std::vector<CommandWords> commands_of(const CLI::App& program);

// Keys and flags with a fixed set of values; the ids after --explain.
Table choices();
// "a.b=" for every key.
std::vector<std::string> keys();
// Flags of every command with a run.
std::vector<std::string> flags();

}  // namespace weft::cli
