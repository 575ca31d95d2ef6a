#include "weft/block/experts.h"

#include "weft/base/casts.h"

namespace weft::block {

using base::number;

namespace {

// Adds a weight with one matrix or bias per expert of the model. `shape` and splits along Axis::Etp
// are those of one expert; the first split divides the experts.
void add_expert_weight(Block& block,
                       Part part,
                       const char* name,
                       const base::Shape& shape,
                       Start start,
                       std::vector<AxisSplit> splits) {
  for (AxisSplit& split : splits) {
    if (split.axis == Axis::Etp) ++split.dim;
  }
  std::vector<std::int64_t> dims{splits.front().blocks.front().count};
  for (const std::int64_t dim : shape.dims()) dims.push_back(dim);
  block.weight(part, name, base::Shape(dims), start, std::move(splits), Home::Expert);
}

}  // namespace

// Logits and choice are recomputed; the dispatcher's layout stays.
Block route(const Stream& stream, const Experts& experts, const Routing& routing) {
  Block block(Piece::Route);
  block.parts = {Part::Norm, Part::Choose};
  block.norm(Part::Norm, "norm", stream.hidden, stream);
  block.weight(Part::Choose, "router.weight", {experts.count, stream.hidden}, Start::Product);
  if (stream.has_biases) {
    block.weight(Part::Choose, "router.bias", {experts.count}, Start::Zeros);
  }
  if (experts.has_balance_bias) {
    block.weight(Part::Choose, "bias", {experts.count}, Start::Ones, {}, Home::Untrained);
  }
  block.pass(Part::Norm, Elementwise::Norm, stream.hidden);
  block.pass(Part::Choose, Elementwise::RouterInput, stream.hidden);
  block.pass(Part::Choose, Elementwise::Choice, experts.count);
  block.products.push_back({.part = Part::Choose,
                            .out = number(experts.count),
                            .in = number(stream.hidden),
                            .over = Over::OwnTokens,
                            .is_router = true});
  const std::int64_t choices = experts.chosen * (kFp32 + kInt32);
  // Includes the choice before slots are dropped.
  const std::int64_t chosen = choices * (routing.drops_slots ? 2 : 1);
  const std::int64_t tallies = routing.tally.runs + (routing.tally.is_global ? 1 : 0);
  block.slot(Part::Norm, Fate::Remade, norm_bytes(stream));
  block.slot(Part::Choose, Fate::Remade, {.per_token = experts.count * kFp32 + chosen});
  block.slot(Part::Choose, Fate::Kept, {.fixed = tallies * experts.count * kInt64});
  block.slot(Part::Choose, Fate::Kept, routed_bytes(routing.dispatch));
  return block;
}

Block experts(const Stream& stream, const Experts& experts, const Dispatch& dispatch) {
  const std::int64_t d = experts.latent.value_or(stream.hidden), f = experts.each.width;
  const std::int64_t halves = experts.each.first_products();
  const AxisSplit owners{.axis = Axis::Ep, .dim = 0, .blocks = {{.count = experts.count}}};
  const AxisSplit shards = rows(std::vector<SplitBlock>(base::at(halves), {f}), Axis::Etp);

  Block block(Piece::Experts);
  block.parts = {Part::Arrange, Part::Fc1, Part::Act, Part::Fc2};
  if (experts.latent) {
    block.weight(Part::Arrange, "down.weight", {d, stream.hidden}, Start::Product);
    block.weight(Part::Arrange, "up.weight", {stream.hidden, d}, Start::Residual);
    const double latent = number(d), hidden = number(stream.hidden);
    block.products.push_back(
        {.part = Part::Arrange, .out = latent, .in = hidden, .over = Over::OwnTokens});
    block.products.push_back(
        {.part = Part::Arrange, .out = hidden, .in = latent, .over = Over::OwnTokens});
  }
  const auto add = [&](Part part,
                       const char* name,
                       const base::Shape& shape,
                       Start start,
                       std::vector<AxisSplit> splits) {
    splits.insert(splits.begin(), owners);
    add_expert_weight(block, part, name, shape, start, std::move(splits));
  };
  add(Part::Fc1, "fc1.weight", {halves * f, d}, Start::Product, {shards});
  if (stream.has_biases) add(Part::Fc1, "fc1.bias", {halves * f}, Start::Zeros, {shards});
  add(Part::Fc2, "fc2.weight", {d, f}, Start::Residual, {columns(f, Axis::Etp)});
  if (stream.has_biases) add(Part::Fc2, "fc2.bias", {d}, Start::Zeros, {});
  block.products.push_back({.part = Part::Fc1,
                            .out = number(halves * f),
                            .in = number(d),
                            .shared = Shared::Out,
                            .over = Over::Rows});
  block.passes.push_back({.part = Part::Act,
                          .what = Elementwise::Activation,
                          .channels = number(f),
                          .over = Over::Rows,
                          .is_shared = true});
  block.products.push_back({.part = Part::Fc2,
                            .out = number(d),
                            .in = number(f),
                            .shared = Shared::In,
                            .over = Over::Rows});
  const std::int64_t made = f / experts.shards * stream.element_bytes;
  block.slot(Part::Arrange, Fate::Remade, row_bytes(stream, dispatch));
  block.slot(Part::Arrange, Fate::Kept, arranged_bytes(dispatch));
  block.slot(Part::Arrange, Fate::Kept, {.fixed = experts.local * kInt64});
  block.slot(Part::Fc1, Fate::Remade, {.per_row = halves * made});
  block.slot(Part::Act, Fate::Remade, {.per_row = made});
  return block;
}

}  // namespace weft::block
