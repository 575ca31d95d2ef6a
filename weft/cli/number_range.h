// Bounds on the numbers that options take, with messages that people can read.
#pragma once

#include <CLI/CLI.hpp>

namespace weft::cli {

// Accepts a number from `low` to `high`, both included; not-a-number is none.
CLI::Validator between(double low, double high);

}  // namespace weft::cli
