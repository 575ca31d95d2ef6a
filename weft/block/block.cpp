#include "weft/block/block.h"

#include <utility>

#include "weft/base/casts.h"

namespace weft::block {

using base::number;

void Block::weight(Part part,
                   std::string_view weight_name,
                   const base::Shape& shape,
                   Start start,
                   std::vector<AxisSplit> splits,
                   Home home) {
  weights.push_back({.part = part,
                     .name = weight_name,
                     .shape = shape,
                     .splits = std::move(splits),
                     .home = home,
                     .start = start});
}

void Block::norm(Part part,
                 std::string_view weight_name,
                 std::int64_t width,
                 const Stream& stream,
                 std::vector<AxisSplit> splits) {
  weight(part, weight_name, {width}, Start::Ones, splits);
  weights.back().kind = ".weight";
  if (stream.norm_weights == 1) return;
  weight(part, weight_name, {width}, Start::Zeros, std::move(splits));
  weights.back().kind = ".bias";
}

std::string name_of(const Block& block, const Weight& weight) {
  std::string name(block.name);
  return ((name += '.') += weight.name) += weight.kind;
}

void Block::pass(Part part, Elementwise what, std::int64_t channels, Over over) {
  passes.push_back({.part = part, .what = what, .channels = number(channels), .over = over});
}

void Block::shared_pass(Part part, Elementwise what, std::int64_t channels) {
  pass(part, what, channels, Over::GroupTokens);
  passes.back().is_shared = true;
}

void Block::slot(Part part, Fate fate, const Bytes& bytes) {
  slots.push_back({.part = part, .bytes = bytes, .fate = fate});
}

void Block::sends(Part part, const Bytes& forward, const Bytes& backward) {
  sendings.push_back({.part = part, .forward = forward, .backward = backward});
}

double multiplications(const Block& block, std::int64_t choices) {
  double sum = 0;
  for (const Product& product : block.products) {
    const double times = product.over == Over::Rows ? number(choices) : 1;
    if (!product.is_router) sum += times * product.out * product.in;
  }
  for (const Pass& pass : block.passes) sum += pass.counted;
  if (block.core) sum += (block.core->scores + block.core->values) * block.core->seen;
  return sum;
}

Bytes stream_bytes(const Stream& stream) {
  return {.per_token = stream.hidden * stream.element_bytes};
}

Bytes norm_bytes(const Stream& stream) {
  return {.per_token = stream.hidden * stream.element_bytes + kFp32};
}

Bytes of_group(const Stream& stream, std::int64_t per_token) {
  return {.per_token = stream.tp * per_token};
}

namespace {

void add_exchange(Block& block, const Stream& stream, Part part) {
  const Bytes sent{.per_token = (stream.tp - 1) * stream.hidden * stream.element_bytes};
  block.sends(part, sent, sent);
}

}  // namespace

void add_gather(Block& block, const Stream& stream, Fate fate) {
  block.parts.push_back(Part::Gather);
  block.slot(Part::Gather, fate, of_group(stream, stream.hidden * stream.element_bytes));
  add_exchange(block, stream, Part::Gather);
}

void add_scatter(Block& block, const Stream& stream) {
  block.parts.push_back(Part::Scatter);
  add_exchange(block, stream, Part::Scatter);
}

void add_exchanged(Block& block, const Stream& stream, const std::vector<Part>& products) {
  if (stream.tp > 1) add_gather(block, stream, Fate::Remade);
  block.parts.insert(block.parts.end(), products.begin(), products.end());
  if (stream.tp > 1) add_scatter(block, stream);
}

void add_sub_layer(Block& block,
                   const Stream& stream,
                   const std::vector<Part>& products,
                   Fate fate) {
  block.parts.push_back(Part::Norm);
  block.norm(Part::Norm, "norm", stream.hidden, stream);
  block.pass(Part::Norm, Elementwise::Norm, stream.hidden);
  block.slot(Part::Norm, Fate::Remade, norm_bytes(stream));
  add_exchanged(block, stream, products);
  block.parts.push_back(Part::Add);
  block.pass(Part::Add, Elementwise::Residual, stream.hidden);
  block.slot(Part::Add, fate, stream_bytes(stream));
}

}  // namespace weft::block
