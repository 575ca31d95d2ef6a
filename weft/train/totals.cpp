#include "weft/train/totals.h"

#include <algorithm>
#include <cmath>

namespace weft::train {
namespace {

using tensor::DType;
using tensor::Shape;
using tensor::Tag;
using tensor::Tensor;

// Places in a rank's row of numbers; then losses and labelled tokens, one each a micro-batch.
enum Place : std::int64_t { kDenseSquareNorm, kExpertSquareNorm, kStop, kOverflow, kFirstLoss };

}  // namespace

Totals::Totals(tensor::Pool& pool, int world, std::int64_t micro_batches, std::int64_t moe_layers)
    : world_(world), micro_batches_(micro_batches), moe_layers_(moe_layers) {
  const std::int64_t numbers = kFirstLoss + 2 * micro_batches;
  own_ = Tensor(pool, DType::F64, {numbers}, Tag::Workspace);
  own_router_ = Tensor(pool, DType::F32, {2}, Tag::Workspace);
  if (world == 1) {
    all_ = own_;
    all_router_ = own_router_;
  } else {
    all_ = Tensor(pool, DType::F64, {world * numbers}, Tag::Communication);
    all_router_ = Tensor(pool, DType::F32, {world * 2}, Tag::Communication);
  }
}

void Totals::begin(std::span<const std::int64_t> labelled) {
  double* own = own_.host<double>();
  std::fill_n(own, own_.elements(), 0.0);
  std::ranges::copy(labelled, own + kFirstLoss + micro_batches_);
  std::fill_n(own_router_.host<float>(), 2, 0.0f);
}

void Totals::request_stop() { own_.host<double>()[kStop] = 1; }

Tensor Totals::loss_sum(std::int64_t micro_batch) const {
  return own_.range(kFirstLoss + micro_batch, Shape{1});
}
Tensor Totals::dense_square_norm() const { return own_.range(kDenseSquareNorm, Shape{1}); }
Tensor Totals::expert_square_norm() const { return own_.range(kExpertSquareNorm, Shape{1}); }
Tensor Totals::overflow() const { return own_.range(kOverflow, Shape{1}); }
Tensor Totals::balance_loss() const { return own_router_.range(0, Shape{1}); }
Tensor Totals::z_loss() const { return own_router_.range(1, Shape{1}); }

void Totals::gather(tensor::Stream& stream, comm::Communicator& world) const {
  world.all_gather(stream, all_, own_);
  world.all_gather(stream, all_router_, own_router_);
}

double Totals::mean_loss(const double* own) const {
  double loss = 0;
  for (std::int64_t m = 0; m < micro_batches_; ++m) {
    loss += own[kFirstLoss + m] / std::max(1.0, own[kFirstLoss + micro_batches_ + m]);
  }
  return loss / static_cast<double>(micro_batches_);
}

StepTotals Totals::read(const grid::Grid& grid) const {
  StepTotals totals;
  double square_norm = 0;
  // Each rank has the sums of its own layers; the ranks of a stage see different tokens.
  const int stage_ranks = world_ / grid.pp();
  const auto mean_of =
      static_cast<double>(stage_ranks * micro_batches_ * std::max<std::int64_t>(1, moe_layers_));
  for (int rank = 0; rank < world_; ++rank) {
    const double* own = all_.host<double>() + rank * own_.elements();
    const float* router = all_router_.host<float>() + rank * 2;
    const grid::Coordinate place = grid.coordinate(rank);
    totals.rank_losses.emplace_back();
    if (place.pp + 1 == grid.pp()) {
      totals.rank_losses.back() = mean_loss(own);
      totals.loss += *totals.rank_losses.back() / stage_ranks;
    }
    totals.rank_square_norms.push_back(own[kDenseSquareNorm] + own[kExpertSquareNorm]);
    totals.balance_loss += router[0] / mean_of;
    totals.z_loss += router[1] / mean_of;
    totals.stop_requested |= own[kStop] != 0;
    totals.overflowed |= own[kOverflow] != 0;
    // Replicas hold the same gradients after the reductions: each counts once.
    if (place.dp == 0 && place.cp == 0) square_norm += own[kDenseSquareNorm];
    if (place.edp == 0) square_norm += own[kExpertSquareNorm];
  }
  totals.gradient_norm = std::sqrt(square_norm);
  return totals;
}

}  // namespace weft::train
