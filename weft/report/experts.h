// Experts in a trace without a config: advice mentions experts only if present.
#pragma once

#include <optional>

#include "weft/report/evidence.h"

namespace weft::report {

// nullopt: no operation names experts, their dispatch or grouped products.
std::optional<Experts> experts_in(const Evidence& evidence);

}  // namespace weft::report
