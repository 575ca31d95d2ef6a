#include "weft/block/attention.h"

#include "weft/base/casts.h"
#include "weft/base/check.h"

namespace weft::block {

using base::number;
using config::QkNorm;

double tokens_seen(const Stream& stream, const Window& window) {
  const double sequence = number(stream.sequence);
  if (!window || *window >= stream.sequence) return sequence / 2;
  const double width = number(*window);
  return width - width * (width - 1) / (2 * sequence);
}

std::vector<Part> attended_parts(const AttentionSharing& sharing) {
  std::vector<Part> parts;
  if (sharing.head_ranks > 1) parts.insert(parts.end(), {Part::Heads, Part::Arrange});
  if (sharing.keys == KeyExchange::Ring) parts.push_back(Part::Ring);
  if (sharing.keys == KeyExchange::Gather) parts.push_back(Part::Keys);
  parts.push_back(Part::Core);
  if (sharing.head_ranks > 1) parts.push_back(Part::Tokens);
  parts.push_back(Part::Proj);
  return parts;
}

// A ring keeps its keys until they are read. After an exchange of heads, the projection reads a
// separate output. Attention keeps its output and the logarithm of the sum of exponentials.
void add_attended(Block& block,
                  const Stream& stream,
                  const Attended& attended,
                  const AttentionSharing& sharing) {
  const std::int64_t b = stream.element_bytes, heads = sharing.head_ranks;
  const std::int64_t keys = attended.keys_and_values * b, output = attended.output * b;
  const auto of_tokens = [&](std::int64_t bytes) { return of_group(stream, bytes); };
  const auto to_other_heads = [&](Part part, std::int64_t bytes) {
    const Bytes sent = of_tokens(bytes / heads * (heads - 1));
    block.sends(part, sent, sent);
  };
  block.slot(Part::Core, Fate::Remade, of_tokens(output + attended.heads * kFp32));
  if (heads > 1) {
    to_other_heads(Part::Heads, attended.inputs() * b);
    block.slot(Part::Arrange, Fate::Remade, of_tokens(attended.inputs() * b));
    to_other_heads(Part::Tokens, output);
    block.slot(Part::Proj, Fate::Remade, of_tokens(output));
  }
  const std::int64_t others = sharing.key_ranks - 1;
  switch (sharing.keys) {
    case KeyExchange::None:
      return;
    case KeyExchange::Ring:
      block.slot(Part::Ring, Fate::Remade, of_tokens(keys));
      return block.sends(Part::Ring, of_tokens(keys), of_tokens(keys));
    case KeyExchange::Gather:
      block.slot(Part::Keys, Fate::Remade, of_tokens(sharing.key_ranks * keys));
      // Gradients of keys return in fp32.
      return block.sends(Part::Keys,
                         of_tokens(others * keys),
                         of_tokens(others * attended.keys_and_values * kFp32));
  }
  UNREACHABLE("exchange of keys {}", static_cast<int>(sharing.keys));
}

std::int64_t kept_before_core(const Stream& stream,
                              const Attended& attended,
                              const AttentionSharing& sharing,
                              std::int64_t all,
                              std::int64_t meets) {
  if (!sharing.is_shared()) return all;
  return all - meets + (sharing.head_ranks > 1 ? 0 : attended.inputs() * stream.element_bytes);
}

namespace {

// A per-head norm is shared by all heads; a norm of the projection has its channels.
void add_head_norms(Block& block,
                    const Stream& stream,
                    const GroupedHeads& heads,
                    const SplitBlock& queries,
                    const SplitBlock& keys) {
  const auto norm = [&](const char* name, const SplitBlock& channels) {
    if (heads.norm == QkNorm::Head) return block.norm(Part::Qkv, name, heads.channels, stream);
    block.norm(Part::Qkv, name, channels.count, stream, {rows({channels})});
  };
  if (heads.norm == QkNorm::None) return;
  norm("q_norm", queries);
  norm("k_norm", keys);
}

bool norms_across_ranks(const Stream& stream, const GroupedHeads& heads) {
  return stream.tp > 1 && heads.norm == QkNorm::Projection;
}

// Normed queries and keys besides the product's output, with reciprocal deviations: per head, or
// one for all queries and one for all keys.
std::int64_t normed_bytes(const Stream& stream, const GroupedHeads& own) {
  if (own.norm == QkNorm::None) return 0;
  const std::int64_t deviations = own.norm == QkNorm::Head ? own.heads + own.groups : 2;
  return (own.queries() + own.keys()) * stream.element_bytes + deviations * kFp32;
}

// A norm over the heads of several ranks is a separate part, after an exchange of sums: two numbers
// per token.
void add_projected(Block& block,
                   const Stream& stream,
                   const GroupedHeads& heads,
                   const Attended& attended,
                   const AttentionSharing& sharing) {
  const GroupedHeads own = heads.local(stream.tp);
  const std::int64_t b = stream.element_bytes, made = (own.queries() + 2 * own.keys()) * b;
  const bool is_normed = own.norm != QkNorm::None;
  // The norm's gradient reads the product's output; attention reads the values unchanged.
  const std::int64_t meets = is_normed ? (own.queries() + own.keys()) * b : made;
  const Bytes all = of_group(
      stream,
      kept_before_core(stream, attended, sharing, made + normed_bytes(stream, own), meets));
  const Bytes product = of_group(stream, made);
  if (norms_across_ranks(stream, heads)) {
    const Bytes sums{.per_token = 2 * (stream.tp - 1) * 2 * kFp32};
    block.slot(Part::Qkv, Fate::Kept, product);
    block.sends(Part::Squares, sums, sums);
    block.slot(Part::Turn, Fate::Kept, {.per_token = all.per_token - product.per_token});
    return;
  }
  block.slot(Part::Qkv, Fate::Remade, all);
  // Norm and rotation are recomputed from the product after its return.
  if (is_normed && sharing.head_ranks == 1) block.slots.back().travels = product;
}

}  // namespace

Block attention(const Stream& stream, const GroupedHeads& heads, const AttentionSharing& sharing) {
  const std::int64_t d = stream.hidden, q = heads.queries(), k = heads.keys();
  const SplitBlock queries{.count = q}, keys{.count = k, .most_parts = heads.groups};
  std::vector<SplitBlock> made{queries};
  if (heads.has_gate) made.push_back(queries);
  made.insert(made.end(), {keys, keys});
  const std::int64_t width = q * (heads.has_gate ? 2 : 1) + 2 * k;

  Block block(Piece::Attention);
  std::vector<Part> parts{Part::Qkv};
  if (norms_across_ranks(stream, heads)) parts.insert(parts.end(), {Part::Squares, Part::Turn});
  for (const Part part : attended_parts(sharing)) parts.push_back(part);
  add_sub_layer(block, stream, parts, Fate::Shown);

  block.weight(Part::Qkv, "qkv.weight", {width, d}, Start::Product, {rows(made)});
  if (stream.has_biases || heads.has_input_bias) {
    block.weight(Part::Qkv, "qkv.bias", {width}, Start::Zeros, {rows(made)});
  }
  add_head_norms(block, stream, heads, queries, keys);
  if (heads.has_sinks) {
    block.weight(Part::Core, "sinks", {heads.heads}, Start::Zeros, {rows({{heads.heads}})});
  }
  block.weight(Part::Proj, "proj.weight", {d, q}, Start::Residual, {columns(q)});
  if (stream.has_biases) block.weight(Part::Proj, "proj.bias", {d}, Start::Zeros);

  const Part turned = norms_across_ranks(stream, heads) ? Part::Turn : Part::Qkv;
  block.products.push_back({.part = Part::Qkv,
                            .out = number(width),
                            .in = number(d),
                            .shared = Shared::Out,
                            .reads_norm = true});
  block.shared_pass(turned, Elementwise::Rotation, q + k);
  if (heads.norm != QkNorm::None) block.shared_pass(turned, Elementwise::HeadNorm, q + k);
  block.core = {.heads = number(heads.heads),
                .scores = number(q),
                .values = number(q),
                .keys = number(2 * k),
                .seen = tokens_seen(stream, heads.window)};
  if (heads.has_gate) block.shared_pass(Part::Proj, Elementwise::OutputGate, q);
  block.products.push_back(
      {.part = Part::Proj, .out = number(d), .in = number(q), .shared = Shared::In});

  const GroupedHeads own = heads.local(stream.tp);
  const Attended attended{.heads = own.heads,
                          .queries = own.queries(),
                          .keys_and_values = 2 * own.keys(),
                          .output = own.queries()};
  add_projected(block, stream, heads, attended, sharing);
  add_attended(block, stream, attended, sharing);
  return block;
}

}  // namespace weft::block
