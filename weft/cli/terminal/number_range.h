// Option types: numbers within bounds with readable messages, and lists.
#pragma once

#include <CLI/CLI.hpp>

namespace weft::cli {

// Restricts the option to numbers in [low, high] (never NaN); its help shows the bounds. Returns
// the option.
CLI::Option* within(double low, double high, CLI::Option* option);

// List in one word, a,b,c: later words do not belong to it.
CLI::Option* comma_list(CLI::Option* option);

}  // namespace weft::cli
