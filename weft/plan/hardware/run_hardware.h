// Hardware of one run: under the priced program, and with the run's emulated links.
#pragma once

#include <optional>

#include "weft/config/config.h"
#include "weft/plan/hardware/hardware.h"

namespace weft::plan {

// Default program of a price. Weft if the file has numbers for Weft and `weft train` can run the
// config on one GPU. That means runtime.device=cuda, ranks of one process and no missing part.
// Otherwise the program behind the file's own numbers.
Program usual_program(const config::Config& config, const Hardware& hardware);

// `asked`: the user's choice; nullopt: the default program. ConfigError if the file lacks its
// numbers.
Hardware hardware_of_run(const config::Config& config,
                         const Hardware& hardware,
                         std::optional<Program> asked);

// Text such as "priced as Weft runs it".
std::string program_text(const Hardware& hardware);

}  // namespace weft::plan
