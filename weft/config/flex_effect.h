// --moe_flex_dispatcher_backend X: apply a backend (rules F1 to F6).
#pragma once

#include "weft/config/ledger.h"

namespace weft::config {

// `last` has the GPU and the experts as all words leave them.
void apply_flex_backend(const Asked& asked, const Config& last, Ledger& ledger);

}  // namespace weft::config
