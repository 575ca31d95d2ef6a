// The bodies of the end of a step: gradients are summed, judged and applied.
#include <cmath>

#include "weft/base/check.h"
#include "weft/optim/gradient_norm.h"
#include "weft/train/program_pieces.h"

namespace weft::train {
namespace {

using model::Home;
using schedule::Part;
using tensor::Stream;
using tensor::Tensor;

}  // namespace

Program::Bodies Program::Pieces::reduce(Part part) {
  if (part == Part::Dense) {
    return {.step_end = [](Program& p, Stream& stream) {
      p.groups_.dense_reduction->all_reduce(stream,
                                            p.parameters_.buffer(Home::Dense).gradients,
                                            comm::Reduce::Sum);
    }};
  }
  if (part == Part::Copied) {
    return {.step_end = [](Program& p, Stream& stream) {
      const Tensor& gradients = p.parameters_.buffer(Home::Dense).gradients;
      for (const model::CopiedRange& copied : p.copied_) {
        comm::Communicator& holders = copied.parts == 1 ? *p.groups_.tp : *p.groups_.key_copies;
        const auto& [begin, count] = copied.elements;
        holders.all_reduce(stream, gradients.range(begin, {count}), comm::Reduce::Sum);
      }
    }};
  }
  CHECK(part == Part::Expert, "no gradients are {}", schedule::word(part));
  return {.step_end = [](Program& p, Stream& stream) {
    p.groups_.expert_reduction->all_reduce(stream,
                                           p.parameters_.buffer(Home::Expert).gradients,
                                           comm::Reduce::Sum);
  }};
}

// Both sides of tied embeddings end with the sum of their gradients.
Program::Bodies Program::Pieces::tie() {
  return {.step_end = [](Program& p, Stream& stream) {
    if (p.anatomy_.tie == schedule::Tie::BetweenStages) {
      const Tensor& gradient = p.parameters_.find("embedding.weight").gradient;
      return p.groups_.embedding->all_reduce(stream, gradient, comm::Reduce::Sum);
    }
    kernels::accumulate(stream, p.gradients_.embedding_VD, p.parameters_.tied_head_gradient());
  }};
}

Program::Bodies Program::Pieces::norm() {
  return {.step_end = [](Program& p, Stream& stream) {
    if (p.stop_ != nullptr && p.stop_->load()) p.totals_.request_stop();
    const Tensor& dense = p.parameters_.buffer(Home::Dense).gradients;
    kernels::Write write = kernels::Write::Assign;
    for (const tensor::Range& counted : p.counted_) {
      const Tensor some = dense.range(counted.begin, {counted.count});
      kernels::squared_norm(stream, p.totals_.dense_square_norm(), some, write);
      write = kernels::Write::Accumulate;
    }
    kernels::squared_norm(stream,
                          p.totals_.expert_square_norm(),
                          p.parameters_.buffer(Home::Expert).gradients,
                          kernels::Write::Assign);
  }};
}

Program::Bodies Program::Pieces::totals() {
  return {
      .step_end = [](Program& p, Stream& stream) { p.totals_.gather(stream, *p.groups_.world); }};
}

Program::Bodies Program::Pieces::clip() {
  return {.step_end = [](Program& p, Stream&) { p.read_totals(); }};
}

Program::Bodies Program::Pieces::optimizer() {
  return {.step_end = [](Program& p, Stream& stream) { p.apply_gradients(stream); }};
}

void Program::apply_gradients(Stream& stream) {
  // A step without room for its rows changes nothing, and runs again. A step that is not finite
  // changes nothing. The gradients stay: the next step's first ones take their place.
  if (totals_read_.overflowed || !std::isfinite(totals_read_.gradient_norm)) return;
  const double scale = optim::clip_scale(totals_read_.gradient_norm, config_.optimizer.clip_grad);
  for (const optim::AdamW& optimizer : optimizers_) {
    optimizer.apply(stream, config_.optimizer, learning_rate_, scale, step_ + 1);
  }
  move_biases(stream);
}

// Towards even loads, by the rows of the whole step.
void Program::move_biases(Stream& stream) {
  if (!config_.model.moe_router_enable_expert_bias) return;
  for (const int layer : parameters_.holding().layers) {
    if (!config_.model.is_moe_layer(layer)) continue;
    kernels::move_bias(stream,
                       weights_.layers[static_cast<std::size_t>(layer)].route.bias_E,
                       totals_.router().rows(layer),
                       static_cast<float>(config_.model.moe_router_bias_update_rate));
  }
}

}  // namespace weft::train
