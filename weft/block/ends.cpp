#include "weft/block/ends.h"

#include "weft/base/casts.h"

namespace weft::block {

using base::number;

AxisSplit table_split(const Vocabulary& vocabulary) {
  return rows({{.count = vocabulary.count, .padded = vocabulary.padded}});
}

Block embedding(const Stream& stream, const Vocabulary& vocabulary) {
  Block block(Piece::Embed);
  block.name = "embedding";
  block.parts = {Part::Lookup};
  // The lookup covers all tokens of the group, until the scatter.
  if (stream.tp > 1) add_scatter(block, stream);
  block.pass(Part::Lookup, Elementwise::Lookup, stream.hidden);
  block.slot(block.parts.back(), Fate::Output, stream_bytes(stream));
  const std::int64_t d = stream.hidden;
  block.weight(Part::Lookup,
               "weight",
               {vocabulary.count, d},
               Start::Product,
               {table_split(vocabulary)});
  if (vocabulary.positions > 0) {
    block.weight(Part::Lookup, "positions", {vocabulary.positions, d}, Start::Product);
  }
  return block;
}

// Logits of all tokens of the group, for a share of the vocabulary. Gathered tokens replace the
// rank's own and are kept: the head's gradients follow at once.
Block head(const Stream& stream, const Vocabulary& vocabulary, std::int64_t logit_bytes) {
  const std::int64_t d = stream.hidden;
  Block block(Piece::Head);
  block.parts = {Part::Norm};
  block.slot(Part::Norm,
             Fate::Kept,
             stream.tp == 1 ? norm_bytes(stream) : Bytes{.per_token = kFp32});
  if (stream.tp > 1) add_gather(block, stream, Fate::Kept);
  block.parts.push_back(Part::Logits);
  block.slot(Part::Logits, Fate::Kept, {.per_token = vocabulary.padded * logit_bytes});
  if (stream.tp > 1) {
    block.parts.push_back(Part::Sums);
    block.sends(Part::Sums, {.per_token = (stream.tp - 1) * stream.tp * 2 * kFp32}, {});
  }
  block.parts.push_back(Part::Loss);
  block.slot(Part::Loss, Fate::Kept, of_group(stream, kFp32));
  block.norm(Part::Norm, "norm", d, stream);
  if (!vocabulary.is_tied) {
    block.weight(Part::Logits,
                 "weight",
                 {vocabulary.count, d},
                 Start::Product,
                 {table_split(vocabulary)});
  }
  block.pass(Part::Norm, Elementwise::Norm, d);
  block.products.push_back({.part = Part::Logits,
                            .out = number(vocabulary.count),
                            .in = number(d),
                            .shared = Shared::Out});
  block.shared_pass(Part::Loss, Elementwise::Loss, vocabulary.count);
  return block;
}

Block token_ahead(const Stream& stream) {
  const std::int64_t d = stream.hidden;
  Block block(Piece::Mlp);
  block.name = "ahead";
  block.norm(Part::Norm, "embedding_norm", d, stream);
  block.norm(Part::Norm, "hidden_norm", d, stream);
  block.norm(Part::Norm, "norm", d, stream);
  block.weight(Part::Fc1, "proj.weight", {d, 2 * d}, Start::Product, {rows({{d}})});
  block.products.push_back(
      {.part = Part::Fc1, .out = number(d), .in = number(2 * d), .shared = Shared::Out});
  block.pass(Part::Norm, Elementwise::StreamsNorm, d);
  // The reference counts a multiplication a channel of each norm.
  block.passes.back().counted = number(3 * d);
  return block;
}

}  // namespace weft::block
