// What the start of a pasted line says of the machines.
#pragma once

#include "weft/words/ledger.h"
#include "weft/words/words.h"

namespace weft::words {

// Ranks that share a machine, and the number of ranks where torchrun starts one for each GPU.
// Warns where torchrun may start with fewer ranks (H18).
void finish_launch(const Words& read, Ledger& ledger);

}  // namespace weft::words
