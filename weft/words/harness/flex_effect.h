// --moe_flex_dispatcher_backend X: applies a backend (rules F1 to F6).
#pragma once

#include "weft/words/ledger.h"

namespace weft::words {

// `last`: config after all words, for GPU and experts.
void apply_flex_backend(const Asked& asked, const config::Config& last, Ledger& ledger);

}  // namespace weft::words
