#include "weft/model/parameters.h"

#include <algorithm>
#include <cstring>
#include <ranges>

#include "weft/base/random.h"

namespace weft::model {
namespace {

using tensor::BFloat16;
using tensor::DType;
using tensor::Tag;

// Zeroes what the host may touch before any stream does.
void clear(const Tensor& t) {
  if (t.bytes() > 0) std::memset(t.host_raw(), 0, static_cast<std::size_t>(t.bytes()));
}

// Elements [begin, begin + values.size()) of this rank's part.
void set(const Tensor& weight, std::int64_t begin, std::span<const float> values) {
  if (weight.dtype() == DType::F32) {
    std::ranges::copy(values, weight.host<float>() + begin);
  } else {
    std::ranges::transform(values, weight.host<BFloat16>() + begin, [](float value) {
      return BFloat16(value);
    });
  }
}

void fill(const Parameter& parameter, std::uint64_t seed) {
  const ParameterSpec& spec = parameter.spec;
  std::vector<float> values(
      static_cast<std::size_t>(std::min<std::int64_t>(parameter.weight.elements(), 1 << 16)));
  const std::uint64_t key = base::combine(seed, base::hash(spec.name));
  const auto deviation = static_cast<float>(spec.init_deviation);
  for (const tensor::Run& run : tensor::runs_of(spec.slice)) {
    for (std::int64_t begin = 0; begin < run.count; begin += std::ssize(values)) {
      const std::int64_t n = std::min<std::int64_t>(std::ssize(values), run.count - begin);
      const std::span<float> part = std::span(values).first(static_cast<std::size_t>(n));
      if (spec.is_matrix()) {
        base::normals(key, static_cast<std::uint64_t>(run.global + begin), part);
        for (float& value : part) value *= deviation;
      } else {
        std::ranges::fill(part, spec.is_trained() ? 1.0f : 0.0f);
      }
      set(parameter.weight, run.local + begin, part);
    }
  }
}

// The parameters of a home, in order of use.
template <typename All>
auto of_home(All& all, Home home) {
  return all | std::views::filter([home](const Parameter& p) { return p.spec.home == home; });
}

}  // namespace

tensor::DType dtype_of(config::Precision precision) {
  return precision == config::Precision::Fp32 ? DType::F32 : DType::BF16;
}

Parameters::Parameters(Pool& pool,
                       const config::ModelConfig& config,
                       const Holding& holding,
                       const AxisRanks& ranks,
                       const BufferRules& rules)
    : holding_(holding) {
  for (ParameterSpec& spec : list_parameters(config, holding, ranks)) {
    all_.push_back({.spec = std::move(spec)});
  }
  const bool tied = config.share_embeddings_and_output_weights;
  for (const Home home : {Home::Dense, Home::Expert, Home::Untrained}) {
    make_buffers(pool, home, dtype_of(config.params_dtype), tied ? Ties::Yes : Ties::No, rules);
  }
  const ParameterBuffer& dense = buffer(Home::Dense);
  normed_dense_gradients_ = dense.gradients;
  if (!tied || !holding.head) return;
  const Parameter& table = find("embedding.weight");
  if (holding.copies_table(config)) {
    CHECK(table.offset == 0, "the copied table is not the last in use");
    const std::int64_t begin = dense.layout.buckets.front().elements.end();
    normed_dense_gradients_ = dense.gradients.range(begin, {dense.gradients.elements() - begin});
  } else {
    tied_head_gradient_ = Tensor(pool, DType::F32, table.spec.shape, Tag::Gradients);
    clear(tied_head_gradient_);
  }
}

void Parameters::make_buffers(Pool& pool,
                              Home home,
                              DType dtype,
                              Ties ties,
                              const BufferRules& rules) {
  std::vector<BufferItem> items;
  for (const Parameter& parameter : of_home(all_, home)) {
    const bool alone = ties == Ties::Yes && parameter.spec.name == "embedding.weight";
    items.push_back({.elements = parameter.spec.shape.elements(),
                     .company = alone ? Company::Alone : Company::Any});
  }
  ParameterBuffer& own = buffers_[static_cast<std::size_t>(home)];
  own.layout = lay_out(items, rules);
  const bool trained = home != Home::Untrained;
  own.weights = Tensor(pool, trained ? dtype : DType::F32, {own.layout.elements}, Tag::Weights);
  clear(own.weights);
  if (trained) {
    own.gradients = Tensor(pool, DType::F32, {own.layout.elements}, Tag::Gradients);
    clear(own.gradients);
  }
  std::size_t item = 0;
  for (Parameter& parameter : of_home(all_, home)) {
    parameter.offset = own.layout.offsets[item++];
    parameter.weight = own.weights.range(parameter.offset, parameter.spec.shape);
    if (trained) parameter.gradient = own.gradients.range(parameter.offset, parameter.spec.shape);
  }
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

void Parameters::initialise(std::uint64_t seed) {
  for (const Parameter& parameter : all_) fill(parameter, seed);
}

}  // namespace weft::model
