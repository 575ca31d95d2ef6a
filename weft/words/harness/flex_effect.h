// --moe_flex_dispatcher_backend X: apply a backend (rules F1 to F6).
#pragma once

#include "weft/words/ledger.h"

namespace weft::words {

// `last` has the GPU and the experts as all words leave them.
void apply_flex_backend(const Asked& asked, const config::Config& last, Ledger& ledger);

}  // namespace weft::words
