// A line of Megatron-LM: what it leaves out has that program's defaults, not Weft's.
#pragma once

#include "weft/words/ledger.h"
#include "weft/words/words.h"

namespace weft::words {

// Whether the words are a command line of Megatron-LM: they start one of its scripts
// (pretrain_gpt.py), or give the three flags that each of its runs needs (--num-layers,
// --hidden-size, --num-attention-heads), and no recipe.
bool is_megatron_line(const Words& read);

// Sets what the words leave out as Megatron-LM's parser does, and warns once with all of it (H16).
// Does what that program does beside its flags: cuts of the experts, widths, the padded vocabulary
// (H17). True where nothing says how large the vocabulary is.
bool finish_megatron_line(const Words& read, Ledger& ledger);

}  // namespace weft::words
