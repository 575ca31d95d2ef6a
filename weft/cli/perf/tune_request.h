// Arguments of `weft tune` and `weft bench tune`.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "weft/config/config.h"
#include "weft/plan/tuning/tuning_moves.h"

namespace weft::cli {

// --vary a.b=x,y
void add_vary(CLI::App& command, std::vector<std::string>& vary);
// Moves requested by the user instead of the tuner's; empty: the tuner's. ConfigError for an
// unknown key, or a key outside of the tuner's contract (plan/tuning/tuning_contract.h).
std::vector<plan::TuningMove> asked_moves(const std::vector<std::string>& vary);

// ConfigError for --program=megatron: the steps that are timed are Weft's.
void require_own_program(const std::string& word);

// ConfigError if the run cannot be timed in this process on this machine.
void require_tunable(const config::Config& config);

}  // namespace weft::cli
