#include "weft/block/feed_forward.h"

#include "weft/base/casts.h"

namespace weft::block {

using base::number;

namespace {

// Gate and up are divided separately.
void add_products(Block& block, const Stream& stream, const FeedForward& widths) {
  const std::int64_t d = stream.hidden, f = widths.width, first = widths.first_products() * f;
  std::vector<AxisSplit> halves{
      rows(std::vector<SplitBlock>(base::at(widths.first_products()), {.count = f}))};
  block.weight(Part::Fc1, "fc1.weight", {first, d}, Start::Product, halves);
  if (stream.has_biases) block.weight(Part::Fc1, "fc1.bias", {first}, Start::Zeros, halves);
  block.weight(Part::Fc2, "fc2.weight", {d, f}, Start::Residual, {columns(f)});
  if (stream.has_biases) block.weight(Part::Fc2, "fc2.bias", {d}, Start::Zeros);
  block.products.push_back({.part = Part::Fc1,
                            .out = number(first),
                            .in = number(d),
                            .shared = Shared::Out,
                            .reads_norm = true});
  block.products.push_back(
      {.part = Part::Fc2, .out = number(d), .in = number(f), .shared = Shared::In});
}

}  // namespace

Block dense_feed_forward(const Stream& stream, const FeedForward& widths) {
  // All tokens of the group times a share of the width: equal to the rank's tokens times all of it.
  const std::int64_t made = widths.width * stream.element_bytes;
  Block block(Piece::Mlp);
  add_sub_layer(block, stream, {Part::Fc1, Part::Act, Part::Fc2}, Fate::Output);
  add_products(block, stream, widths);
  block.shared_pass(Part::Act, Elementwise::Activation, widths.width);
  block.slot(Part::Fc1, Fate::Remade, {.per_token = widths.first_products() * made});
  block.slot(Part::Act, Fate::Remade, {.per_token = made});
  return block;
}

Block shared_experts(const Stream& stream, const FeedForward& widths, SharedGate gate) {
  Block block(Piece::Shared);
  add_exchanged(block, stream, {Part::Fc1, Part::Fc2});
  add_products(block, stream, widths);
  block.shared_pass(Part::Fc1, Elementwise::Activation, widths.width);
  const std::int64_t b = stream.element_bytes;
  const std::int64_t made = (widths.first_products() + 1) * widths.width;
  block.slot(Part::Fc1, Fate::Remade, {.per_token = made * b});
  if (gate == SharedGate::Learned) {
    block.parts.push_back(Part::Gate);
    block.weight(Part::Gate, "gate.weight", {1, stream.hidden}, Start::Product);
    // The gate's factor, and its logit.
    block.slot(Part::Gate, Fate::Kept, {.per_token = stream.hidden * b + kFp32});
  }
  return block;
}

}  // namespace weft::block
