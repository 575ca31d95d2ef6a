#include "weft/plan/cost/nominal_work.h"

#include <algorithm>

#include "weft/base/casts.h"
#include "weft/base/check.h"
#include "weft/derive/context_sharing.h"
#include "weft/derive/layer_kind.h"
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

// Weights of latent attention's projections to the compressed width; latent_up: back from it.
double latent_down(const config::ModelConfig& model) {
  const double heads = number(model.num_attention_heads);
  const double q = heads * number(model.latent_head_dim());
  const double queries = model.q_lora_rank ? number(*model.q_lora_rank) : q;
  const double keys = number(model.kv_lora_rank) + number(model.qk_pos_emb_head_dim);
  return number(model.hidden_size) * (queries + keys);
}

double latent_up(const config::ModelConfig& model) {
  if (!model.multi_latent_attention) return 0;
  const double heads = number(model.num_attention_heads), rank = number(model.kv_lora_rank);
  const double q = heads * number(model.latent_head_dim());
  const double queries = model.q_lora_rank ? number(*model.q_lora_rank) * q : 0;
  return queries + rank * heads * number(model.qk_head_dim + model.v_head_dim);
}

double projections_in(const config::ModelConfig& model) {
  if (model.multi_latent_attention) return latent_down(model);
  const double q = number(model.query_width()), kv = number(model.key_width());
  return number(model.hidden_size) * (q + 2 * kv);
}

double projection_out(const config::ModelConfig& model) {
  const std::int64_t width = model.multi_latent_attention
                                 ? model.num_attention_heads * model.v_head_dim
                                 : model.query_width();
  return number(model.hidden_size * width);
}

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
      element_bytes_(config.model.params_dtype == config::Precision::Fp32 ? 4 : 2),
      gradient_bytes_(derive::main_gradients(config) == config::Precision::Fp32 ? kGradientBytes
                                                                                : 2),
      optimizer_(derive::optimizer_traffic(config)),
      buckets_(anatomy.buckets) {
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

// Work of a part of a feed-forward. The last part has one matrix and the first part the others; the
// activation is between them. The output is not recomputed, so recomputation ends before the last
// product.
Work NominalWork::feed_forward_work(const schedule::Node& node,
                                    double rows,
                                    std::int64_t width) const {
  const bool has_products =
      node.part == Part::None || node.part == Part::Fc1 || node.part == Part::Fc2;
  if (node.part == Part::Act) return {.memory_bytes = 3 * rows * number(width) * element_bytes_};
  if (!has_products) return {};
  double matrices = number(model_.feed_forward_matrices());
  if (node.part == Part::Fc2) matrices = 1;
  const bool all_but_last = node.part == Part::None && node.direction == Direction::R;
  if (node.part == Part::Fc1 || all_but_last) matrices = number(model_.first_products());
  return {.flops = kOperations * rows * matrices * number(model_.hidden_size) * number(width)};
}

// Number of steps of a product over tensor-parallel ranks: a step has the tokens of one rank.
double NominalWork::product_steps(const schedule::Node& node) const {
  return node.slice == schedule::kNone ? 1 : number(model_.tensor_model_parallel_size);
}

// Causal attention: scores and values over half the sequence each. The gradient is twice the work
// and has no weight part.
Work NominalWork::attention(const schedule::Node& node) const {
  const double heads = number(model_.num_attention_heads), s = number(model_.seq_length);
  const double core = model_.multi_latent_attention
                          ? heads * number(model_.latent_head_dim() + model_.v_head_dim) / 2 * s
                          : number(model_.query_width()) * s;
  const bool whole = node.part == Part::None;
  double operations = 0;
  if (whole || node.part == Part::Qkv) operations += projections_in(model_) / product_steps(node);
  if (whole || node.part == Part::Expand) operations += latent_up(model_);
  // Each step of a ring is equal work.
  const double steps = node.slice == schedule::kNone
                           ? 1
                           : number(derive::attention_sharing(model_, node.layer).key_ranks);
  if (whole || node.part == Part::Core) operations += core * core_times(node.direction) / steps;
  if (whole || node.part == Part::Proj) {
    operations += projection_out(model_) / product_steps(node);
  }
  return {.flops = kOperations * tokens_ * operations};
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
      return attention(node);
    case Piece::Route:
      if (node.part == Part::Norm) return {.memory_bytes = 2 * tokens_ * stream};
      return {.flops = kOperations * tokens_ * h * number(model_.experts())};
    case Piece::Experts:
      return feed_forward_work(node, rows, model_.expert_shard_width());
    case Piece::Shared:
      return feed_forward_work(node,
                               tokens_ / product_steps(node),
                               derive::shared_expert_width(model_));
    case Piece::Mlp:
      return feed_forward_work(node, tokens_ / product_steps(node), model_.dense_width());
    case Piece::Head:
      if (node.part != Part::None && node.part != Part::Logits) return {};
      return {.flops = kOperations * tokens_ * table(model_)};
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
