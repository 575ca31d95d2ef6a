// Command line of Megatron-LM: missing options have that program's defaults, not Weft's.
#pragma once

#include "weft/words/ledger.h"
#include "weft/words/words.h"

namespace weft::words {

// True for a command line of Megatron-LM without a recipe. It starts one of its scripts
// (pretrain_gpt.py), or has the three flags that each of its runs needs (--num-layers,
// --hidden-size, --num-attention-heads).
bool is_megatron_line(const Words& read);

// Sets missing options as Megatron-LM's parser does, with one warning about all of them (H16).
// Repeats its derived settings: expert cuts, widths, padded vocabulary (H17). True if the
// vocabulary size is unknown.
bool finish_megatron_line(const Words& read, Ledger& ledger);

}  // namespace weft::words
