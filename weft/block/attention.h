// Softmax attention with grouped heads: the mixer of most layers.
#pragma once

#include "weft/block/block.h"

namespace weft::block {

// norm [gather] qkv [squares turn] [heads arrange] [ring or keys] core [tokens] proj [scatter] add
//
// Under context parallelism `heads` and `tokens` exchange heads for tokens and back, with what came
// put in order by `arrange`; `keys` gathers keys and values, or `ring` brings those of one other
// rank a step: then ring and core have a node a step.
Block attention(const Stream& stream, const GroupedHeads& heads, const AttentionSharing& sharing);

// Columns that meet in attention on one tensor-parallel rank, of one token.
struct Attended {
  std::int64_t heads = 0;
  std::int64_t queries = 0, keys_and_values = 0, output = 0;

  std::int64_t inputs() const { return queries + keys_and_values; }
};

// Parts between the product that makes queries, keys and values and the one that reads what they
// gave: what context-parallel ranks exchange around `core`.
std::vector<Part> attended_parts(const AttentionSharing& sharing);
// What these parts keep and send.
void add_attended(Block& block,
                  const Stream& stream,
                  const Attended& attended,
                  const AttentionSharing& sharing);
// Bytes a token that the parts before `core` keep: of `all`, what meets in attention is `meets`.
// Context-parallel ranks keep that where attention reads it, which is behind an exchange of heads.
std::int64_t kept_before_core(const Stream& stream,
                              const Attended& attended,
                              const AttentionSharing& sharing,
                              std::int64_t all,
                              std::int64_t meets);

// Tokens that a query looks at on average: half of the sequence, or a window that is full but at
// the beginning.
double tokens_seen(const Stream& stream, const Window& window);

}  // namespace weft::block
