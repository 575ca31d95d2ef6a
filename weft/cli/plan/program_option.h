// --program: the priced program.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "weft/plan/hardware/hardware.h"

namespace weft::cli {

// `word`: "megatron", "weft", or empty if not given.
CLI::Option* add_program_option(CLI::App& command, std::string& word);
std::optional<plan::Program> asked_program(const std::string& word);

}  // namespace weft::cli
