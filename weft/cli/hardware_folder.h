// Where the hardware files are.
#pragma once

#include <filesystem>
#include <string>

#include "weft/config/config.h"
#include "weft/plan/hardware.h"

namespace weft::cli {

// WEFT_HARDWARE where set; else `hardware` beside the folder of the recipes.
std::filesystem::path hardware_folder();

// The one a command line names, or else that of hardware.gpu. ConfigError that lists the known ones
// where there is none.
plan::Hardware chosen_hardware(const std::string& named, const config::HardwareConfig& hardware);

// ConfigError where the hardware is ranks of so many processor cores, and the run's have others.
void require_threads(const config::Config& config, const plan::Hardware& hardware);

}  // namespace weft::cli
