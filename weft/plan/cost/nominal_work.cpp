#include "weft/plan/cost/nominal_work.h"

#include <algorithm>

#include "weft/base/casts.h"
#include "weft/base/check.h"
#include "weft/derive/blocks.h"
#include "weft/derive/context_sharing.h"
#include "weft/derive/memory/parameter_buffers.h"
#include "weft/plan/cost/nominal_costs.h"

namespace weft::plan {
namespace {

using schedule::Direction;
using schedule::Part;
using schedule::Piece;

// FLOPs per element of a matrix product.
constexpr double kOperations = 2;

using base::number;

double table(const config::ModelConfig& model) {
  return number(model.vocab_size) * number(model.hidden_size);
}

double core_times(Direction direction) {
  if (direction == Direction::D) return 2;
  return direction == Direction::W ? 0 : 1;
}

}  // namespace

NominalWork::NominalWork(const config::Config& config, const schedule::Anatomy& anatomy)
    : model_(config.model),
      tokens_(number(expected_load(config, anatomy.flow).tokens)),
      rows_(number(expected_load(config, anatomy.flow).rows)),
      slices_(anatomy.flow.slices),
      element_bytes_(config.model.params_dtype == base::DType::F32 ? 4 : 2),
      gradient_bytes_(derive::main_gradients(config) == base::DType::F32 ? kGradientBytes : 2),
      optimizer_(derive::optimizer_traffic(config)),
      buckets_(anatomy.buckets) {
  head_ = {derive::head_block(model_)};
  for (const schedule::Chunk& chunk : anatomy.chunks) {
    for (int layer = chunk.first_layer; layer < chunk.end_layer(); ++layer) {
      std::vector<block::Block>& blocks = blocks_[derive::kind_of_layer(model_, layer)];
      if (blocks.empty()) blocks = derive::layer_blocks(model_, layer);
    }
  }
  for (const schedule::BucketAnatomy& bucket : anatomy.buckets) {
    owned_ += number(bucket.elements / bucket.shards);
    for (const schedule::BucketItem& item : bucket.items) {
      for (const schedule::PieceAt& user : item.users) {
        weights_[user] += number(item.elements.count);
      }
    }
  }
  optimized_ = owned_;
  for (const schedule::OffloadedAnatomy& offloaded : anatomy.offloaded) {
    optimized_ -= number(offloaded.elements.count);
  }
}

// Conversion of gradients to the wire format and back.
Work NominalWork::rounding(const schedule::Node& node) const {
  const auto bucket = std::ranges::find_if(buckets_, [&](const schedule::BucketAnatomy& each) {
    return each.part == node.part && each.number == node.slice;
  });
  return {.memory_bytes = number(bucket->elements) * (kGradientBytes + element_bytes_)};
}

const block::Block& NominalWork::block_of(const schedule::Node& node) const {
  const bool is_end = node.layer == schedule::kNone;
  const std::vector<block::Block>& beside =
      is_end ? head_ : blocks_.at(derive::kind_of_layer(model_, node.layer));
  const auto found = std::ranges::find(beside, node.piece, &block::Block::piece);
  CHECK(found != beside.end(), "no block for {}", schedule::print(node));
  return *found;
}

// Rows or tokens of a node. A step of a product over tensor-parallel ranks has the tokens of one
// rank.
double NominalWork::passed(const schedule::Node& node, block::Over over) const {
  const bool is_part = node.slice != schedule::kNone;
  if (over == block::Over::Rows) return is_part ? rows_ / slices_ : rows_;
  const bool is_step = is_part && over == block::Over::GroupTokens;
  return is_step ? tokens_ / number(model_.tensor_model_parallel_size) : tokens_;
}

// The rank has all columns of its own tokens, or their share of the tokens of its group; of an
// expert that ranks share, it has a share. The output of a feed-forward is not recomputed, so
// recomputation ends before the last product.
Work NominalWork::block_work(const schedule::Node& node) const {
  const block::Block& block = block_of(node);
  const bool whole = node.part == Part::None;
  const auto columns = [&](double all, block::Over over, bool is_shared) {
    const bool is_shard = is_shared && over == block::Over::Rows;
    return is_shard ? all / number(model_.expert_shards()) : all;
  };
  Work work;
  for (const block::Product& product : block.products) {
    if (!whole && node.part != product.part) continue;
    if (whole && node.direction == Direction::R && product.part == Part::Fc2) continue;
    const bool is_shared = product.shared != block::Shared::None;
    work.flops += kOperations * passed(node, product.over) *
                  columns(product.out * product.in, product.over, is_shared);
  }
  if (block.core && (whole || node.part == block.core->part)) {
    // Each step of a ring is equal work. The gradient is twice the work and has no weight part.
    const double steps = node.slice == schedule::kNone
                             ? 1
                             : number(derive::attention_sharing(model_, node.layer).key_ranks);
    work.flops += kOperations * tokens_ * (block.core->scores + block.core->values) *
                  block.core->seen * core_times(node.direction) / steps;
  }
  for (const block::Pass& pass : block.passes) {
    const bool is_activation = pass.what == block::Elementwise::Activation;
    const bool is_priced =
        is_activation ? pass.part == Part::Act
                      : node.piece == Piece::Route && pass.what == block::Elementwise::Norm;
    if (whole || node.part != pass.part || !is_priced) continue;
    work.memory_bytes += (is_activation ? 3 : 2) * passed(node, pass.over) * element_bytes_ *
                         columns(pass.channels, pass.over, pass.is_shared);
  }
  return work;
}

double NominalWork::host_bytes(const schedule::OffloadedAnatomy& offloaded) const {
  return number(offloaded.elements.count) * optimizer_.host;
}

// A part has its share of the FLOPs of its piece.
double NominalWork::added_gradient_bytes(const schedule::Node& node) const {
  const bool adds_by_itself =
      gradient_bytes_ == kGradientBytes && model_.gradient_accumulation_fusion;
  if (node.direction != Direction::W || adds_by_itself) return 0;
  const auto found = weights_.find({.layer = node.layer, .piece = node.piece});
  if (found == weights_.end()) return 0;
  schedule::Node part = node, piece = node;
  part.slice = piece.slice = schedule::kNone;
  piece.part = Part::None;
  const double all = work_of(piece).flops;
  const double share = all > 0 ? work_of(part).flops / all : 1;
  return share * found->second * (kGradientBytes + 2 * gradient_bytes_);
}

Work NominalWork::of(const schedule::Node& node) const {
  Work work = work_of(node);
  work.memory_bytes += added_gradient_bytes(node);
  return work;
}

double NominalWork::link_bytes(const schedule::OffloadedAnatomy& offloaded,
                               const schedule::Node& node) const {
  const bool brings_gradients = node.piece == Piece::Download;
  return number(offloaded.elements.count) *
         (brings_gradients ? optimizer_.download : optimizer_.upload);
}

Work NominalWork::work_of(const schedule::Node& node) const {
  const double h = number(model_.hidden_size);
  const double stream = h * element_bytes_;  // bytes of one token or row
  const double rows = node.slice == schedule::kNone ? rows_ : rows_ / slices_;
  switch (node.piece) {
    case Piece::Attention:
    case Piece::Route:
    case Piece::Experts:
    case Piece::Shared:
    case Piece::Mlp:
    case Piece::Head:
      return block_work(node);
    case Piece::Embed:
      return {.memory_bytes = 2 * tokens_ * stream};
    case Piece::Permute:
      return {.memory_bytes = 2 * rows * stream};
    case Piece::Merge:
      return {.memory_bytes = (rows_ + 2 * tokens_) * stream};
    case Piece::Tie:
      return {.memory_bytes = 3 * table(model_) * gradient_bytes_};
    case Piece::Norm:
      return {.memory_bytes = owned_ * gradient_bytes_};
    case Piece::Optimizer:
      return {.memory_bytes = optimized_ * optimizer_.device};
    case Piece::Narrow:
    case Piece::Widen:
      return rounding(node);
    // Without expert parallelism rows stay on the rank.
    case Piece::Counts:
    case Piece::Balance:
    case Piece::Tally:
    case Piece::Sizes:
    case Piece::Dispatch:
    case Piece::Combine:
    case Piece::Send:
    case Piece::Receive:
    case Piece::Reduce:
    case Piece::Gather:
    case Piece::Totals:
    case Piece::Clip:
    case Piece::Snapshot:  // nothing: the priced step does not save
    case Piece::Download:  // see host_bytes and link_bytes
    case Piece::Update:
    case Piece::Upload:
      return {};
  }
  UNREACHABLE("work of {}", schedule::print(node));
}

}  // namespace weft::plan
