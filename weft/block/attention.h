// Softmax attention with grouped heads: the mixer of most layers.
#pragma once

#include "weft/block/block.h"

namespace weft::block {

// norm [gather] qkv [squares turn] [heads arrange] [ring or keys] core [tokens] proj [scatter] add
//
// Under context parallelism `heads` and `tokens` exchange heads for tokens and back; `arrange`
// reorders the received rows. `keys` gathers keys and values, or `ring` brings those of one other
// rank per step. Ring and core then have a node per step.
Block attention(const Stream& stream, const GroupedHeads& heads, const AttentionSharing& sharing);

// Widths of attention's inputs and output on one tensor-parallel rank, per token.
struct Attended {
  std::int64_t heads = 0;
  std::int64_t queries = 0, keys_and_values = 0, output = 0;

  std::int64_t inputs() const { return queries + keys_and_values; }
};

// Parts between the product that makes queries, keys and values and the projection: `core`, and the
// exchanges of context-parallel ranks around it.
std::vector<Part> attended_parts(const AttentionSharing& sharing);
// Adds the bytes that these parts keep and send.
void add_attended(Block& block,
                  const Stream& stream,
                  const Attended& attended,
                  const AttentionSharing& sharing);
// Bytes per token that the parts before `core` keep: `all`, of which `meets` are attention's
// inputs. After an exchange of heads, that exchange keeps attention's inputs instead.
std::int64_t kept_before_core(const Stream& stream,
                              const Attended& attended,
                              const AttentionSharing& sharing,
                              std::int64_t all,
                              std::int64_t meets);

// Mean number of tokens that a query sees: half of the sequence, or a window that is full except at
// the beginning.
double tokens_seen(const Stream& stream, const Window& window);

}  // namespace weft::block
