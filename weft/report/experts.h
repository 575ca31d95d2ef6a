// What a trace tells of experts, where no config does: advice speaks of them only where they are.
#pragma once

#include <optional>

#include "weft/report/evidence.h"

namespace weft::report {

// nullopt: nothing that ran names experts, their dispatch or grouped products.
std::optional<Experts> experts_in(const Evidence& evidence);

}  // namespace weft::report
