// Where the hardware files are.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "weft/config/config.h"
#include "weft/plan/hardware/hardware.h"

namespace weft::cli {

// WEFT_HARDWARE where set; else `hardware` beside the folder of the recipes.
std::filesystem::path hardware_folder();

// By what the driver calls a card. nullopt: no file is of it.
std::optional<plan::Hardware> hardware_of_card(const std::string& card);

// Names the machine's first card, with a warning, where the run computes on one and says none.
void name_card(config::Config& config);

// The one a command line names, or else that of hardware.gpu, or else for runtime.device=cuda that
// of the machine's first card. ConfigError that lists the known ones where there is none.
plan::Hardware chosen_hardware(const std::string& named, const config::Config& config);

// ConfigError where the hardware has no products in the run's number format.
void require_products(const config::Config& config, const plan::Hardware& hardware);

// ConfigError where the hardware is ranks of so many processor cores, and the run's have others.
void require_threads(const config::Config& config, const plan::Hardware& hardware);

}  // namespace weft::cli
