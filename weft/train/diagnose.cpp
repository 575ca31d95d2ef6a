#include "weft/train/diagnose.h"

#include <algorithm>
#include <cmath>

#include "weft/base/text.h"
#include "weft/train/gather_texts.h"

namespace weft::train {
namespace {

using tensor::BFloat16;
using tensor::DType;
using tensor::Tag;
using tensor::Tensor;

bool all_finite(const Tensor& t) {
  const std::int64_t n = t.elements();
  if (t.dtype() == DType::F32) {
    const float* values = t.host<float>();
    return std::all_of(values, values + n, [](float x) { return std::isfinite(x); });
  }
  const BFloat16* values = t.host<BFloat16>();
  return std::all_of(values, values + n, [](BFloat16 x) { return std::isfinite(float(x)); });
}

std::string place_of(const schedule::Node& node) {
  const std::string name = schedule::print(node);
  return node.layer == schedule::kNone ? name : base::text("{} (layer {})", name, node.layer);
}

// The first forward node of this rank whose output is not finite; empty: none.
std::string look_at_forward(Engine& engine, const Batch& batch) {
  std::string found;
  Program& program = engine.program();
  program.begin({.batch = batch});
  engine.forward().run(
      [&](const schedule::Node& node, tensor::Stream& stream) {
        program.run(node, stream);
        if (!found.empty() || node.direction != schedule::Direction::F) return;
        const Tensor output = program.output_of(node);
        if (!output.defined() || output.elements() == 0) return;
        stream.synchronize();
        if (!all_finite(output)) found = "the output of " + place_of(node);
      },
      exec::Tracing::Off);
  program.drop_states();
  return found;
}

std::string look_at_gradients(const Engine& engine) {
  for (const model::Parameter& parameter : engine.parameters().all()) {
    if (!all_finite(parameter.gradient)) return "the gradient of " + parameter.spec.name;
  }
  return {};
}

std::string look_at_weights(const Engine& engine) {
  for (const model::Parameter& parameter : engine.parameters().all()) {
    if (!all_finite(parameter.weight)) return "the weights of " + parameter.spec.name;
  }
  return {};
}

}  // namespace

bool is_finite(const StepTotals& totals) {
  return std::isfinite(totals.loss) && std::isfinite(totals.gradient_norm);
}

std::string find_not_finite(Engine& engine, const Batch& batch, const StepTotals& totals) {
  std::string own = look_at_weights(engine);
  const std::string forward = look_at_forward(engine, batch);
  if (own.empty()) own = forward;
  if (own.empty()) own = look_at_gradients(engine);
  const std::vector<std::string> all = gather_texts(engine, own);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (!all[rank].empty()) {
      return base::text("loss {}, gradient norm {}: on rank {} {} is not finite",
                        totals.loss,
                        totals.gradient_norm,
                        rank,
                        all[rank]);
    }
  }
  return base::text("loss {}, gradient norm {}: no single value is not finite; their sums overflow",
                    totals.loss,
                    totals.gradient_norm);
}

}  // namespace weft::train
