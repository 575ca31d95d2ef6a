#include "weft/block/delta_net.h"

#include "weft/base/casts.h"

namespace weft::block {

using base::number;

// One product makes queries, keys, values, their gate, and two scalars per value head. A
// convolution runs over queries, keys and values. Heads update a state of value by key channels in
// four passes: decay, read by key, write, read by query.
Block delta_net(const Stream& stream, const DeltaHeads& heads) {
  const std::int64_t d = stream.hidden, key = heads.keys(), value = heads.values();
  const std::int64_t scalars = 2 * heads.value_heads, mixed = 2 * key + value;
  constexpr double kStatePasses = 4;

  Block block(Piece::Attention);
  add_sub_layer(block, stream, {Part::Qkv, Part::Core, Part::Proj}, Fate::Shown);
  const std::vector<AxisSplit> made{rows({{key}, {key}, {value}, {value}, {scalars}})};
  block.weight(Part::Qkv, "in.weight", {mixed + value + scalars, d}, Start::Product, made);
  const std::vector<AxisSplit> channels{rows({{key}, {key}, {value}})};
  block.weight(Part::Core, "conv.weight", {mixed, heads.convolution}, Start::Product, channels);
  const std::vector<AxisSplit> each{rows({{heads.value_heads}})};
  block.weight(Part::Core, "decay", {heads.value_heads}, Start::Zeros, each);
  block.weight(Part::Core, "decay.bias", {heads.value_heads}, Start::Ones, each);
  block.weight(Part::Core, "out_norm.weight", {heads.value_channels}, Start::Ones);
  block.weight(Part::Proj, "proj.weight", {d, value}, Start::Residual, {columns(value)});

  block.products.push_back({.part = Part::Qkv,
                            .out = number(mixed + value + scalars),
                            .in = number(d),
                            .shared = Shared::Out,
                            .reads_norm = true});
  // Chunks of linear attention are small products between reads and writes.
  block.shared_pass(Part::Core, Elementwise::Scan, mixed + value);
  block.passes.back().counted = number(heads.convolution) * number(mixed) +
                                number(value) * number(heads.value_channels) * kStatePasses;
  block.products.push_back(
      {.part = Part::Proj, .out = number(d), .in = number(value), .shared = Shared::In});
  // Kept: the product's output; the outputs of convolution and heads, and the normed output.
  const std::int64_t b = stream.element_bytes;
  block.slot(Part::Qkv, Fate::Remade, {.per_token = (mixed + value + scalars) * b});
  block.slot(Part::Core, Fate::Remade, {.per_token = (mixed + 2 * value) * b});
  return block;
}

}  // namespace weft::block
