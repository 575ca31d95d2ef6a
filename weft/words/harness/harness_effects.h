// What flags do beyond setting a key: Megatron Bridge's side effects, each of them reported.
#pragma once

#include <span>

#include "weft/words/ledger.h"
#include "weft/words/words.h"

namespace weft::words {

inline constexpr const char* kOverlap = "comm_overlap.overlap_moe_expert_parallel_comm";

// Applies the effect of one flag. `last` is the config as all words leave it, from a first reading
// over them: a GPU named by a later word counts.
void apply_effect(const Asked& asked, const config::Config& last, Ledger& ledger);

// What depends on all words together, after the last of them.
void finish_effects(std::span<const Asked> asked, Ledger& ledger);

// Words of Megatron that depend on the others (megatron_finish.cpp).
void finish_megatron(std::span<const Asked> asked, Ledger& ledger);

}  // namespace weft::words
