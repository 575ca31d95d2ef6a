// Side effects of flags in Megatron Bridge, each of them reported.
#pragma once

#include <span>

#include "weft/words/ledger.h"
#include "weft/words/words.h"

namespace weft::words {

inline constexpr const char* kOverlap = "comm_overlap.overlap_moe_expert_parallel_comm";

// Applies the effect of one flag. `last`: config after all words, from a first pass: a GPU named by
// a later word counts.
void apply_effect(const Asked& asked, const config::Config& last, Ledger& ledger);

// Applies effects that depend on all words together, after the last word.
void finish_effects(std::span<const Asked> asked, Ledger& ledger);

// Applies Megatron words that depend on others (words/megatron/megatron_finish.cpp).
void finish_megatron(std::span<const Asked> asked, Ledger& ledger);

}  // namespace weft::words
