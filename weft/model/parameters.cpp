#include "weft/model/parameters.h"

#include <algorithm>
#include <ranges>

#include "weft/base/check.h"
#include "weft/kernels/kernels.h"
#include "weft/model/initial_values.h"

namespace weft::model {
namespace {

using tensor::DType;
using tensor::Tag;

// Parameters of a home, in order of use.
template <typename All>
auto of_home(All& all, Home home) {
  return all | std::views::filter([home](const Parameter& p) { return p.spec.home == home; });
}

}  // namespace

tensor::DType dtype_of(DType params) { return params == DType::F32 ? DType::F32 : DType::BF16; }

Parameters::Parameters(Pool& pool,
                       tensor::Stream& stream,
                       const config::ModelConfig& config,
                       const Holding& holding,
                       const AxisRanks& ranks,
                       const BufferScheme& scheme)
    : holding_(holding) {
  for (ParameterSpec& spec : list_parameters(config, holding, ranks)) {
    all_.push_back({.spec = std::move(spec)});
  }
  for (const Home home : {Home::Dense, Home::Expert, Home::Untrained}) {
    make_buffers(pool, stream, home, config, scheme);
  }
  copies_table_ = holding.copies_table(config);
  const bool tied_here =
      config.share_embeddings_and_output_weights && holding.head && !copies_table_;
  if (!tied_here) return;
  tied_head_gradient_ =
      Tensor(pool, dtype_of(scheme.gradients), find("embedding.weight").spec.shape, Tag::Gradients);
  kernels::zero(stream, tied_head_gradient_);
}

void Parameters::make_buffers(Pool& pool,
                              tensor::Stream& stream,
                              Home home,
                              const config::ModelConfig& config,
                              const BufferScheme& scheme) {
  std::vector<const ParameterSpec*> specs;
  for (const Parameter& parameter : of_home(all_, home)) specs.push_back(&parameter.spec);
  ParameterBuffer& own = buffers_[static_cast<std::size_t>(home)];
  own.layout = derive::lay_out(config, holding_, specs, scheme.of(home));
  const bool trained = home != Home::Untrained;
  own.weights = Tensor(pool,
                       trained ? dtype_of(config.params_dtype) : DType::F32,
                       {own.layout.elements},
                       Tag::Weights);
  kernels::zero(stream, own.weights);
  if (trained) {
    own.gradients = Tensor(pool, dtype_of(scheme.gradients), {own.layout.elements}, Tag::Gradients);
    kernels::zero(stream, own.gradients);
  }
  std::size_t item = 0;
  for (Parameter& parameter : of_home(all_, home)) {
    parameter.offset = own.layout.offsets[item++];
    parameter.weight = own.weights.range(parameter.offset, parameter.spec.shape);
    if (trained) parameter.gradient = own.gradients.range(parameter.offset, parameter.spec.shape);
  }
}

std::vector<tensor::Range> Parameters::shares(Home home, std::int64_t shard) const {
  const BufferLayout& layout = buffer(home).layout;
  if (layout.shards == 1) return {{.begin = 0, .count = layout.elements}};
  std::vector<tensor::Range> own;
  for (const Bucket& bucket : layout.buckets) own.push_back(layout.shard(bucket, shard));
  return own;
}

std::vector<tensor::Range> Parameters::normed_ranges(Home home, std::int64_t shard) const {
  const BufferLayout& layout = buffer(home).layout;
  // The copy is last in use: the first bucket is its own.
  const bool has_copy = copies_table_ && home == Home::Dense;
  const std::int64_t begin = has_copy ? layout.buckets.front().elements.end() : 0;
  const tensor::Range counted{.begin = begin, .count = layout.elements - begin};
  std::vector<tensor::Range> ranges;
  for (const tensor::Range& share : shares(home, shard)) {
    const tensor::Range inside = tensor::common(share, counted);
    if (inside.count > 0) ranges.push_back(inside);
  }
  return ranges;
}

std::vector<ParameterRange> Parameters::in_range(Home home, const tensor::Range& range) const {
  std::vector<ParameterRange> found;
  for (const Parameter& parameter : all_ | std::views::reverse) {
    if (parameter.spec.home != home) continue;
    const tensor::Range own{.begin = parameter.offset, .count = parameter.weight.elements()};
    const tensor::Range inside = tensor::common(own, range);
    if (inside.count == 0) continue;
    found.push_back({.parameter = &parameter,
                     .elements = {.begin = inside.begin - parameter.offset, .count = inside.count},
                     .at = inside.begin - range.begin});
  }
  return found;
}

bool Parameters::has(std::string_view name) const {
  return std::ranges::any_of(all_, [&](const Parameter& p) { return p.spec.name == name; });
}

const Parameter& Parameters::find(std::string_view name) const {
  const auto found =
      std::ranges::find_if(all_, [&](const Parameter& p) { return p.spec.name == name; });
  CHECK(found != all_.end(), "no parameter '{}'", name);
  return *found;
}

void Parameters::initialise(tensor::Stream& stream, std::uint64_t seed, int threads) {
  put_initial_values(stream, all_, seed, threads);
}

}  // namespace weft::model
