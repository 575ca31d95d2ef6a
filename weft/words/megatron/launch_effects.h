// Machine settings from the launch of a pasted line.
#pragma once

#include "weft/words/ledger.h"
#include "weft/words/words.h"

namespace weft::words {

// Sets the ranks per machine, and the number of ranks if torchrun starts one per GPU. Warns if
// torchrun may start with fewer ranks (H18).
void finish_launch(const Words& read, Ledger& ledger);

}  // namespace weft::words
