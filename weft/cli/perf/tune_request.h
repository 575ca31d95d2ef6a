// What `weft tune` and `weft bench tune` ask of their words.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "weft/config/config.h"
#include "weft/plan/tuning/tuning_moves.h"

namespace weft::cli {

// --vary a.b=x,y
void add_vary(CLI::App& command, std::vector<std::string>& vary);
// What the user wants tried, instead of what the tuner thinks of; none: that. ConfigError where a
// key is none, or is one that the tuner must leave (plan/tuning_contract.h).
std::vector<plan::TuningMove> asked_moves(const std::vector<std::string>& vary);

// ConfigError where the run cannot be timed in this process, on this machine.
void require_tunable(const config::Config& config);

}  // namespace weft::cli
