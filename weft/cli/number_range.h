// Bounds on the numbers that options take, with messages that people can read.
#pragma once

#include <CLI/CLI.hpp>

namespace weft::cli {

// The option takes a number from `low` to `high`, both included (not-a-number is none), and its
// help shows them. Returns it.
CLI::Option* within(double low, double high, CLI::Option* option);

}  // namespace weft::cli
