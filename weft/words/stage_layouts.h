// Pipelines that the harness changes besides its flags.
#pragma once

#include <span>
#include <string_view>

#include "weft/words/ledger.h"
#include "weft/words/words.h"

namespace weft::words {

// Applies after -pp and -vp: DeepSeek-V3 and Kimi-K2 get the stage layout of their new sizes. A
// pipeline of one rank drops the recipe's chunks (H19).
void finish_stages(std::string_view recipe, std::span<const Asked> asked, Ledger& ledger);

}  // namespace weft::words
