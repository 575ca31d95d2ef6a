// The card of one run: under the program that is priced, and with the links that the run emulates.
#pragma once

#include <optional>

#include "weft/config/config.h"
#include "weft/plan/hardware.h"

namespace weft::plan {

// Whose program a run is priced as where the user does not say: Weft's where `weft train` can do
// the run on one card (runtime.device=cuda, ranks of one process, no missing part) and the file has
// numbers of Weft; else the one that the file's own numbers are of.
Program usual_program(const config::Config& config, const Hardware& hardware);

// `asked`: as the user says; nullopt: the usual program. ConfigError where the file has no numbers
// of it.
Hardware hardware_of_run(const config::Config& config,
                         const Hardware& hardware,
                         std::optional<Program> asked);

// "priced as Weft runs it".
std::string program_text(const Hardware& hardware);

}  // namespace weft::plan
