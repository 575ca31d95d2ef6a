#include "weft/train/totals.h"

#include <algorithm>
#include <cmath>

#include "weft/derive/memory/parameter_buffers.h"
#include "weft/kernels/kernels.h"
#include "weft/tensor/transfer.h"

namespace weft::train {
namespace {

using tensor::DType;
using tensor::Shape;
using tensor::Tag;
using tensor::Tensor;

// Indices in a rank's row of numbers; then the loss and the labelled tokens of each micro-batch.
enum Place : std::int64_t { kDenseSquareNorm, kExpertSquareNorm, kAsked, kOverflow, kFirstLoss };
constexpr std::int64_t kOfMicroBatch = 2;

}  // namespace

bool is_finite(const StepTotals& totals) {
  return std::isfinite(totals.loss) && std::isfinite(totals.gradient_norm);
}

Squares squares_of(const config::Config& config) {
  const derive::BufferScheme buffers = derive::buffer_scheme(config, 0);
  return {.dense = buffers.dense.shards, .expert = buffers.expert.shards};
}

bool counts_in_total(const grid::Grid& grid, int rank, derive::Home home, const Squares& squares) {
  const grid::Coordinate place = grid.coordinate(rank);
  if (home == derive::Home::Expert) return place.edp < squares.expert;
  return place.dp * grid.cp() + place.cp < squares.dense;
}

Totals::Totals(tensor::Pool& pool,
               const config::ModelConfig& model,
               int world,
               std::int64_t micro_batches,
               const Squares& squares)
    : world_(world), micro_batches_(micro_batches), squares_(squares), router_(pool, model, world) {
  const std::int64_t numbers = kFirstLoss + kOfMicroBatch * micro_batches;
  own_ = Tensor::host_visible(pool, DType::F64, {numbers}, Tag::Workspace);
  sent_ = all_ = own_;
  if (world == 1) return;
  sent_ = Tensor(pool, DType::F64, {numbers}, Tag::Communication);
  all_ = Tensor(pool, DType::F64, {world * numbers}, Tag::Communication);
}

std::vector<Tensor> Totals::of_more(tensor::Pool& pool, std::int64_t micro_batches) const {
  const std::int64_t numbers = kOfMicroBatch * micro_batches;
  std::vector<Tensor> more;
  more.emplace_back(pool, DType::F64, Shape{numbers}, Tag::Workspace);
  if (world_ == 1) return more;
  more.emplace_back(pool, DType::F64, Shape{numbers}, Tag::Communication);
  more.emplace_back(pool, DType::F64, Shape{world_ * numbers}, Tag::Communication);
  return more;
}

void Totals::begin(tensor::Stream& stream, std::span<const std::int64_t> labelled) {
  double* own = own_.host<double>();
  std::fill_n(own, own_.elements(), 0.0);
  std::ranges::copy(labelled, own + kFirstLoss + micro_batches_);
  router_.begin(stream);
  stream.synchronize();
}

void Totals::ask(Ask what) {
  double& asked = own_.host<double>()[kAsked];
  asked = static_cast<double>(static_cast<int>(asked) | static_cast<int>(what));
}

Tensor Totals::loss_sum(std::int64_t micro_batch) const {
  return own_.range(kFirstLoss + micro_batch, Shape{1});
}
Tensor Totals::dense_square_norm() const { return own_.range(kDenseSquareNorm, Shape{1}); }
Tensor Totals::expert_square_norm() const { return own_.range(kExpertSquareNorm, Shape{1}); }
Tensor Totals::overflow() const { return own_.range(kOverflow, Shape{1}); }

void Totals::gather(tensor::Stream& stream, comm::Communicator& world) const {
  kernels::copy(stream, sent_, own_);
  world.all_gather(stream, all_, sent_);
  router_.gather(stream, world);
}

double Totals::mean_loss(const double* own) const {
  double loss = 0;
  for (std::int64_t m = 0; m < micro_batches_; ++m) {
    loss += own[kFirstLoss + m] / std::max(1.0, own[kFirstLoss + micro_batches_ + m]);
  }
  return loss / static_cast<double>(micro_batches_);
}

StepTotals Totals::read(tensor::Stream& stream, const grid::Grid& grid, int loss_pp_rank) const {
  StepTotals totals;
  std::vector<double> numbers(static_cast<std::size_t>(all_.elements()));
  if (world_ > 1) tensor::download<double>(stream, numbers, all_);
  const RouterTotals::Numbers of_routers = router_.download(stream);
  stream.synchronize();
  // With one rank the numbers are on the host already; a copy from the host to the host through the
  // GPU would wait.
  if (world_ == 1) std::copy_n(own_.host<double>(), own_.elements(), numbers.begin());
  double square_norm = 0;
  int asked = 0;
  const int stage_ranks = world_ / grid.pp();
  for (int rank = 0; rank < world_; ++rank) {
    const double* own = numbers.data() + rank * own_.elements();
    const grid::Coordinate place = grid.coordinate(rank);
    totals.rank_losses.emplace_back();
    if (place.pp == loss_pp_rank) {
      totals.rank_losses.back() = mean_loss(own);
      // Context-parallel ranks have parts of a micro-batch's mean.
      totals.loss += *totals.rank_losses.back() * grid.cp() / stage_ranks;
    }
    totals.rank_square_norms.push_back(own[kDenseSquareNorm] + own[kExpertSquareNorm]);
    asked |= static_cast<int>(own[kAsked]);
    totals.overflowed |= own[kOverflow] != 0;
    const auto counts = [&](derive::Home home) {
      return counts_in_total(grid, rank, home, squares_);
    };
    if (counts(derive::Home::Dense)) square_norm += own[kDenseSquareNorm];
    if (counts(derive::Home::Expert)) square_norm += own[kExpertSquareNorm];
  }
  // Rounded: the fp64 sum depends in its last bits on the partition.
  totals.gradient_norm = static_cast<float>(std::sqrt(square_norm));
  const auto is_asked = [&](Ask what) { return (asked & static_cast<int>(what)) != 0; };
  totals.stop_requested = is_asked(Ask::Stop);
  totals.time_is_up = is_asked(Ask::Leave);
  if (is_asked(Ask::Fail)) totals.loss = totals.gradient_norm = std::nan("");
  totals.router_losses = router_.losses(of_routers, grid, micro_batches_);
  totals.expert_loads = router_.loads(of_routers);
  return totals;
}

}  // namespace weft::train
