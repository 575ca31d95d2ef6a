#include "weft/block/latent_attention.h"

#include "weft/base/casts.h"
#include "weft/block/attention.h"

namespace weft::block {

using base::number;

namespace {

// A norm of compressed columns counts one multiplication per channel, as in the reference.
void add_latent_norm(Block& block, const char* name, std::int64_t width, const Stream& stream) {
  block.norm(Part::Expand, name, width, stream);
  block.pass(Part::Expand, Elementwise::LatentNorm, width, Over::GroupTokens);
  block.passes.back().counted = number(width);
}

// Kept: the output of the projection down; normed compressed columns with a reciprocal deviation;
// and expanded queries, keys and values.
void add_expanded(Block& block,
                  const Stream& stream,
                  const LatentHeads& own,
                  const Attended& attended,
                  const AttentionSharing& sharing) {
  const std::int64_t b = stream.element_bytes, q = own.queries();
  const std::int64_t down = (own.query_rank.value_or(q) + own.compressed()) * b;
  const std::int64_t queries = own.query_rank ? (*own.query_rank + q) * b + kFp32 : 0;
  const std::int64_t all = down + queries + own.rank * b + kFp32 + (q + own.values()) * b;
  const std::int64_t meets = (attended.keys_and_values + (own.query_rank ? q : 0)) * b;
  const std::int64_t kept = kept_before_core(stream, attended, sharing, all, meets);
  block.slot(Part::Qkv, Fate::Remade, of_group(stream, down));
  block.slot(Part::Expand, Fate::Remade, of_group(stream, kept - down));
}

}  // namespace

Block latent_attention(const Stream& stream,
                       const LatentHeads& heads,
                       const AttentionSharing& sharing) {
  const std::int64_t d = stream.hidden, q = heads.queries(), r = heads.rank;
  const std::int64_t up = heads.heads * (heads.unturned + heads.value);
  const std::int64_t query = heads.query_rank.value_or(q);
  // All ranks hold compressed columns whole; heads divide uncompressed queries.
  const SplitBlock queries{.count = query, .most_parts = heads.query_rank ? 1 : heads.heads};
  const SplitBlock compressed{.count = heads.compressed(), .most_parts = 1};

  Block block(Piece::Attention);
  std::vector<Part> parts{Part::Qkv, Part::Expand};
  for (const Part part : attended_parts(sharing)) parts.push_back(part);
  add_sub_layer(block, stream, parts, Fate::Shown);

  block.weight(Part::Qkv,
               "down.weight",
               {query + heads.compressed(), d},
               Start::Product,
               {rows({queries, compressed})});
  const auto down = [&](std::int64_t out, Shared shared) {
    block.products.push_back({.part = Part::Qkv,
                              .out = number(out),
                              .in = number(d),
                              .shared = shared,
                              .reads_norm = true});
  };
  const auto expand = [&](std::int64_t out, std::int64_t in) {
    block.products.push_back({.part = Part::Expand,
                              .out = number(out),
                              .in = number(in),
                              .shared = Shared::Out,
                              .reads_norm = true});
  };
  down(query, heads.query_rank ? Shared::None : Shared::Out);
  down(heads.compressed(), Shared::None);
  if (heads.query_rank) {
    add_latent_norm(block, "q_norm", query, stream);
    block.weight(Part::Expand, "q_up.weight", {q, query}, Start::Product, {rows({{.count = q}})});
    expand(q, query);
  }
  add_latent_norm(block, "kv_norm", r, stream);
  block.weight(Part::Expand, "kv_up.weight", {up, r}, Start::Product, {rows({{.count = up}})});
  expand(up, r);
  block.shared_pass(Part::Expand, Elementwise::LatentRotation, q);
  block.core = {.heads = number(heads.heads),
                .scores = number(q),
                .values = number(heads.values()),
                .keys = number(q + heads.values()),
                .seen = tokens_seen(stream, std::nullopt)};
  block.weight(Part::Proj,
               "proj.weight",
               {d, heads.values()},
               Start::Residual,
               {columns(heads.values())});
  // The reference gives a bias to the output projection only.
  if (stream.has_biases) block.weight(Part::Proj, "proj.bias", {d}, Start::Zeros);
  block.products.push_back(
      {.part = Part::Proj, .out = number(d), .in = number(heads.values()), .shared = Shared::In});

  const LatentHeads own = heads.local(stream.tp);
  const Attended attended{.heads = own.heads,
                          .queries = own.queries(),
                          .keys_and_values = own.queries() + own.values(),
                          .output = own.values()};
  add_expanded(block, stream, own, attended, sharing);
  add_attended(block, stream, attended, sharing);
  return block;
}

}  // namespace weft::block
