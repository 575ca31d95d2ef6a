#include "weft/train/log/model_statistics.h"

#include <array>
#include <bit>
#include <cmath>

#include "weft/base/casts.h"
#include "weft/kernels/kernels.h"
#include "weft/model/tensor_copies.h"
#include "weft/tensor/transfer.h"
#include "weft/train/saves/save_talk.h"

namespace weft::train {
namespace {

using model::Home;
using tensor::DType;
using tensor::Range;
using tensor::Tag;
using tensor::Tensor;

constexpr std::array kHomes{Home::Dense, Home::Expert};

// Ranges of this rank's buffers that count: as in the gradient norm, without padding.
std::vector<Range> counted_elements(const Engine& engine, Home home) {
  const model::Parameters& parameters = engine.parameters();
  const Groups& groups = engine.groups();
  const int tp = groups.grid.tp();
  std::vector<Range> runs =
      home == Home::Dense
          ? model::counted_ranges(parameters.normed_ranges(home, groups.instance(home).rank()),
                                  model::copied_ranges(parameters, tp),
                                  tp,
                                  groups.self.tp)
          : parameters.normed_ranges(home, groups.instance(home).rank());
  std::vector<Range> elements;
  for (const Range& run : runs) {
    for (const model::ParameterRange& inside : parameters.in_range(home, run)) {
      const Range next{.begin = run.begin + inside.at, .count = inside.elements.count};
      const bool goes_on = !elements.empty() && elements.back().end() == next.begin;
      goes_on ? void(elements.back().count += next.count) : elements.push_back(next);
    }
  }
  return elements;
}

// Adds this rank's values into elements of a device vector.
class Counter {
 public:
  explicit Counter(Engine& engine)
      : engine_(engine),
        stream_(engine.lanes()[schedule::Lane::Compute]),
        sums_(engine.pool(), DType::F64, {4}, Tag::Workspace) {
    kernels::zero(stream_, sums_);
  }

  void add_squares(Home home, std::int64_t place) {
    const Tensor& weights = engine_.parameters().buffer(home).weights;
    for (const Range& run : counted_elements(engine_, home)) {
      kernels::squared_norm(stream_,
                            sums_.range(place, {1}),
                            weights.range(run.begin, {run.count}),
                            kernels::Write::Accumulate);
    }
  }

  void add_zeros(Home home, std::int64_t place) {
    const Tensor& gradients = engine_.parameters().buffer(home).gradients;
    for (const Range& run : counted_elements(engine_, home)) {
      kernels::count_zeros(stream_,
                           sums_.range(place, {1}),
                           gradients.range(run.begin, {run.count}),
                           kernels::Write::Accumulate);
    }
  }

  std::vector<double> read() const { return tensor::read<double>(stream_, sums_); }

 private:
  Engine& engine_;
  tensor::Stream& stream_;
  const Tensor sums_;  // fp64 (4): squares of each home, then zeros
};

}  // namespace

ModelStatistics model_statistics(Engine& engine) {
  const config::Config& config = engine.config();
  ModelStatistics statistics;
  const bool has_norm = config.logger.log_params_norm;
  const bool has_zeros = config.optimizer.log_num_zeros_in_grad;
  if (!has_norm && !has_zeros) return statistics;
  Counter counter(engine);
  for (std::size_t i = 0; i < kHomes.size(); ++i) {
    const auto place = static_cast<std::int64_t>(i);
    if (has_norm) counter.add_squares(kHomes[i], place);
    if (has_zeros) counter.add_zeros(kHomes[i], place + 2);
  }
  const std::vector<double> own = counter.read();
  std::vector<std::int64_t> words;
  for (const double number : own) words.push_back(std::bit_cast<std::int64_t>(number));
  const std::vector<std::int64_t> all = SaveTalk(engine).gather(words);
  std::array<double, 4> sums{};
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::size_t rank = i / own.size(), place = i % own.size();
    if (!counts_in_total(engine.groups().grid,
                         static_cast<int>(rank),
                         kHomes[place % 2],
                         squares_of(config))) {
      continue;
    }
    sums[place] += std::bit_cast<double>(all[i]);
  }
  // Rounded: the fp64 sum depends in its last bits on the partition.
  if (has_norm) statistics.parameter_norm = static_cast<float>(std::sqrt(sums[0] + sums[1]));
  if (has_zeros) statistics.gradient_zeros = std::llround(sums[2] + sums[3]);
  return statistics;
}

}  // namespace weft::train
