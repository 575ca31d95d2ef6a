#include "weft/train/log/router_totals.h"

#include <algorithm>

#include "weft/base/check.h"
#include "weft/kernels/kernels.h"
#include "weft/tensor/transfer.h"

namespace weft::train {
namespace {

using tensor::DType;
using tensor::Shape;
using tensor::Tag;
using tensor::Tensor;

// Indices in a rank's row of losses.
enum LossPlace : std::int64_t { kBatch, kSequence, kGlobal, kZ, kLosses };

std::vector<int> moe_layers_of(const config::ModelConfig& model) {
  std::vector<int> layers;
  for (int layer = 0; layer < model.num_layers; ++layer) {
    if (model.is_moe_layer(layer)) layers.push_back(layer);
  }
  return layers;
}

}  // namespace

ExpertLoads loads_of(int layer, std::span<const std::int64_t> rows, std::int64_t dropped) {
  std::vector<std::int64_t> sorted(rows.begin(), rows.end());
  std::ranges::sort(sorted);
  double sum = 0;
  for (const std::int64_t n : sorted) sum += static_cast<double>(n);
  if (sum == 0) return {.layer = layer, .dropped = dropped};
  const double mean = sum / static_cast<double>(sorted.size());
  // Smallest load that at least `percent` percent of the experts do not exceed.
  const auto percentile = [&](std::size_t percent) {
    return static_cast<double>(sorted[(sorted.size() * percent + 99) / 100 - 1]) / mean;
  };
  return {.layer = layer,
          .max = percentile(100),
          .p95 = percentile(95),
          .p50 = percentile(50),
          .dropped = dropped};
}

RouterTotals::RouterTotals(tensor::Pool& pool, const config::ModelConfig& model, int world)
    : experts_(model.experts()), moe_layers_(moe_layers_of(model)) {
  const std::int64_t layers = std::ssize(moe_layers_);
  own_losses_ = Tensor(pool, DType::F32, {kLosses}, Tag::Workspace);
  all_losses_ =
      world == 1 ? own_losses_ : Tensor(pool, DType::F32, {world * kLosses}, Tag::Communication);
  rows_ = Tensor(pool, DType::I64, {layers * (experts_ + 1)}, Tag::Workspace);
  if (model.aux_loss_coeff(config::LoadBalancing::GlobalAuxLoss) != 0) {
    global_ = Tensor(pool, DType::I64, {layers * experts_}, Tag::Workspace);
  }
}

void RouterTotals::begin(tensor::Stream& stream) {
  for (const Tensor& t : {own_losses_, rows_, global_}) {
    if (t.defined()) kernels::zero(stream, t);
  }
}

model::RouterSums RouterTotals::of_layer(int layer) const {
  const auto found = std::ranges::find(moe_layers_, layer);
  CHECK(found != moe_layers_.end(), "layer {} has no router", layer);
  const std::int64_t index = found - moe_layers_.begin(), layers = std::ssize(moe_layers_);
  const auto loss = [&](LossPlace place) { return own_losses_.range(place, Shape{1}); };
  return {
      .batch_loss_1 = loss(kBatch),
      .sequence_loss_1 = loss(kSequence),
      .global_loss_1 = loss(kGlobal),
      .z_loss_1 = loss(kZ),
      .rows_1E = rows_.range(index * experts_, {1, experts_}),
      .dropped_1 = rows_.range(layers * experts_ + index, Shape{1}),
      .global_1E = global_.defined() ? global_.range(index * experts_, {1, experts_}) : Tensor()};
}

void RouterTotals::gather(tensor::Stream& stream, comm::Communicator& world) const {
  world.all_gather(stream, all_losses_, own_losses_);
  if (!moe_layers_.empty()) world.all_reduce(stream, rows_, comm::Reduce::Sum);
}

Tensor RouterTotals::rows(int layer) const { return of_layer(layer).rows_1E.view({experts_}); }

RouterTotals::Numbers RouterTotals::download(tensor::Stream& stream) const {
  Numbers numbers{.losses = std::vector<float>(static_cast<std::size_t>(all_losses_.elements())),
                  .rows = std::vector<std::int64_t>(static_cast<std::size_t>(rows_.elements()))};
  tensor::download<float>(stream, numbers.losses, all_losses_);
  tensor::download<std::int64_t>(stream, numbers.rows, rows_);
  return numbers;
}

RouterLosses RouterTotals::losses(const Numbers& numbers,
                                  const grid::Grid& grid,
                                  std::int64_t micro_batches) const {
  RouterLosses sum;
  const std::vector<float>& all = numbers.losses;
  // Each rank has the sums of its own layers; the ranks of a stage see different tokens.
  const auto mean_of = static_cast<double>(grid.world() / grid.pp() * micro_batches *
                                           std::max<std::int64_t>(1, std::ssize(moe_layers_)));
  for (std::size_t begin = 0; begin < all.size(); begin += kLosses) {
    sum.batch += static_cast<double>(all[begin + kBatch]) / mean_of;
    sum.sequence += static_cast<double>(all[begin + kSequence]) / mean_of;
    sum.global += static_cast<double>(all[begin + kGlobal]) / mean_of;
    sum.z += static_cast<double>(all[begin + kZ]) / mean_of;
  }
  return sum;
}

std::vector<ExpertLoads> RouterTotals::loads(const Numbers& numbers) const {
  std::vector<ExpertLoads> loads;
  const std::int64_t* rows = numbers.rows.data();
  const std::int64_t* dropped = rows + std::ssize(moe_layers_) * experts_;
  for (std::size_t i = 0; i < moe_layers_.size(); ++i) {
    const auto experts = static_cast<std::size_t>(experts_);
    loads.push_back(loads_of(moe_layers_[i], {rows + i * experts, experts}, dropped[i]));
  }
  return loads;
}

}  // namespace weft::train
