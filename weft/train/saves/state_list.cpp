#include "weft/train/saves/state_list.h"

#include <algorithm>

#include "weft/base/check.h"

namespace weft::train {
namespace {

using tensor::DType;
using tensor::Tag;
using tensor::Tensor;

Tensor number(tensor::Pool& pool, std::int64_t value) {
  Tensor t = Tensor::host_visible(pool, DType::I64, {1}, Tag::Workspace);
  *t.host<std::int64_t>() = value;
  return t;
}

using checkpoint::StateEntry;

StateEntry single(const std::string& name, const Tensor& tensor) {
  return {.name = name, .tensor = tensor, .slice = tensor::whole_slice({1})};
}

// Adds the parameters in a share of their buffers; `share` has one element per element of the
// range.
void add_share(std::vector<StateEntry>& list,
               const std::string& name,
               const Tensor& share,
               const std::vector<model::ParameterRange>& ranges) {
  for (const model::ParameterRange& range : ranges) {
    const model::ParameterSpec& spec = range.parameter->spec;
    StateEntry entry{.name = name + "/" + spec.name,
                     .tensor = share.range(range.at, {range.elements.count}),
                     .slice = spec.slice};
    const bool is_whole = entry.slice.elements == range.elements;
    if (is_whole) entry.tensor = entry.tensor.view(spec.shape);
    entry.slice.elements = range.elements;
    list.push_back(std::move(entry));
  }
}

}  // namespace

Progress::Progress(tensor::Pool& pool, std::int64_t seed)
    : step_(number(pool, 0)),
      samples_(number(pool, 0)),
      seed_(number(pool, seed)),
      not_finite_(number(pool, 0)),
      repeated_(number(pool, 0)),
      optimizer_begin_(number(pool, 0)) {}

void Progress::advance(std::int64_t samples) {
  ++*step_.host<std::int64_t>();
  *samples_.host<std::int64_t>() += samples;
}

std::vector<std::string> Progress::names() {
  return {"progress/step",
          "progress/samples",
          kSeedName,
          "progress/not_finite",
          "progress/repeated",
          kOptimizerBeginName};
}

std::vector<StateEntry> Progress::entries() const {
  const std::vector<Tensor> tensors{step_,
                                    samples_,
                                    seed_,
                                    not_finite_,
                                    repeated_,
                                    optimizer_begin_};
  const std::vector<std::string> all = names();
  std::vector<StateEntry> entries;
  for (std::size_t i = 0; i < all.size(); ++i) entries.push_back(single(all[i], tensors[i]));
  return entries;
}

std::vector<StateEntry> share_list(const model::Parameters& parameters,
                                   model::Home home,
                                   const tensor::Range& range,
                                   const std::vector<NamedShare>& shares) {
  std::vector<StateEntry> list;
  const std::vector<model::ParameterRange> ranges = parameters.in_range(home, range);
  for (const NamedShare& share : shares) {
    CHECK(share.values.elements() == range.count,
          "{}: {} elements of {}",
          share.name,
          share.values.elements(),
          range.count);
    add_share(list, share.name, share.values, ranges);
  }
  return list;
}

std::vector<StateEntry> state_list(Engine& engine, const Progress& progress) {
  engine.program().gather_weights();
  return state_list(engine.parameters(), engine.optimizers(), progress);
}

std::vector<StateEntry> state_list(const model::Parameters& parameters,
                                   const std::vector<OptimizerShare>& optimizers,
                                   const Progress& progress) {
  std::vector<StateEntry> list = progress.entries();
  const auto add =
      [&](model::Home home, const tensor::Range& range, const std::vector<NamedShare>& shares) {
        std::ranges::move(share_list(parameters, home, range, shares), std::back_inserter(list));
      };
  for (const model::Home home : {model::Home::Dense, model::Home::Expert, model::Home::Untrained}) {
    const model::ParameterBuffer& buffer = parameters.buffer(home);
    add(home,
        {.begin = 0, .count = buffer.layout.elements},
        {{.name = "weights", .values = buffer.weights}});
  }
  for (const OptimizerShare& share : optimizers) {
    std::vector<NamedShare> states{{.name = "optimizer.moment1", .values = share.adamw.moment1()},
                                   {.name = "optimizer.moment2", .values = share.adamw.moment2()}};
    if (parameters.buffer(share.home).weights.dtype() != DType::F32) {
      const bool is_remainder = share.adamw.master().dtype() == DType::I16;
      states.push_back({.name = is_remainder ? "optimizer.remainder" : "optimizer.master",
                        .values = share.adamw.master()});
    }
    add(share.home, share.range, states);
  }
  return list;
}

}  // namespace weft::train
