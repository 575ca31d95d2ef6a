// What options take: numbers within bounds, with messages that people can read, and lists.
#pragma once

#include <CLI/CLI.hpp>

namespace weft::cli {

// The option takes a number from `low` to `high`, both included (not-a-number is none), and its
// help shows them. Returns it.
CLI::Option* within(double low, double high, CLI::Option* option);

// A list in one word, a,b,c: the words after it are not of the list.
CLI::Option* comma_list(CLI::Option* option);

}  // namespace weft::cli
