#include "weft/train/state_list.h"

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

checkpoint::StateEntry part_of(const std::string& name,
                               const Tensor& whole,
                               const model::Parameter& parameter) {
  const model::ParameterSpec& spec = parameter.spec;
  const auto dims = spec.global_shape.dims();
  std::vector<std::int64_t> offset(dims.size(), 0);
  // Ranks split parameters along the first dim only (experts).
  offset[0] = spec.begin / (spec.global_shape.elements() / dims[0]);
  return {.name = name + "/" + spec.name,
          .tensor = whole.range(parameter.offset, spec.shape),
          .global_shape = {dims.begin(), dims.end()},
          .offset = std::move(offset)};
}

}  // namespace

Progress::Progress(tensor::Pool& pool, std::int64_t seed)
    : step_(number(pool, 0)), samples_(number(pool, 0)), seed_(number(pool, seed)) {}

void Progress::advance(std::int64_t samples) {
  ++*step_.host<std::int64_t>();
  *samples_.host<std::int64_t>() += samples;
}

std::vector<checkpoint::StateEntry> Progress::entries() const {
  return {{.name = "progress/step", .tensor = step_, .global_shape = {1}, .offset = {0}},
          {.name = "progress/samples", .tensor = samples_, .global_shape = {1}, .offset = {0}},
          {.name = "rng/seed", .tensor = seed_, .global_shape = {1}, .offset = {0}}};
}

std::vector<checkpoint::StateEntry> state_list(Engine& engine, const Progress& progress) {
  std::vector<checkpoint::StateEntry> list = progress.entries();
  for (const model::Parameter& parameter : engine.parameters().all()) {
    const Tensor& weights = engine.parameters().buffer(parameter.spec.home).weights;
    list.push_back(part_of("weights", weights, parameter));
    if (!parameter.spec.is_trained()) continue;
    const optim::AdamW& optimizer =
        engine.optimizers()[parameter.spec.home == model::Home::Dense ? 0 : 1];
    list.push_back(part_of("optimizer.moment1", optimizer.moment1(), parameter));
    list.push_back(part_of("optimizer.moment2", optimizer.moment2(), parameter));
    if (weights.dtype() != DType::F32) {
      list.push_back(part_of("optimizer.master", optimizer.master(), parameter));
    }
  }
  return list;
}

}  // namespace weft::train
