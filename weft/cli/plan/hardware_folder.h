// Folder of the hardware files.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "weft/config/config.h"
#include "weft/plan/hardware/hardware.h"

namespace weft::cli {

// WEFT_HARDWARE if set; otherwise `hardware` beside the recipes folder.
std::filesystem::path hardware_folder();

// Hardware by the driver's name of a GPU. nullopt: no file for it.
std::optional<plan::Hardware> hardware_of_card(const std::string& card);

// Sets hardware.gpu to the machine's first GPU, with a warning, if the run computes on a GPU and
// names none.
void name_card(config::Config& config);

// Hardware named on the command line, otherwise hardware.gpu, otherwise (runtime.device=cuda) the
// machine's first GPU. ConfigError with the known names if there is none.
plan::Hardware chosen_hardware(const std::string& named, const config::Config& config);

// ConfigError if the hardware does not support the run's number format.
void require_products(const config::Config& config, const plan::Hardware& hardware);

// ConfigError if the hardware assumes another number of cores per rank than the run.
void require_threads(const config::Config& config, const plan::Hardware& hardware);

}  // namespace weft::cli
