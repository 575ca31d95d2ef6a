// Softmax attention with compressed queries, keys and values (MLA).
#pragma once

#include "weft/block/block.h"

namespace weft::block {

// norm [gather] qkv expand [heads arrange] [ring or keys] core [tokens] proj [scatter] add
Block latent_attention(const Stream& stream,
                       const LatentHeads& heads,
                       const AttentionSharing& sharing);

}  // namespace weft::block
