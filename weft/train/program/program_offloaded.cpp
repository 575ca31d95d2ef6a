// Bodies of optimizer state in host memory: download gradients, update state and weights on the
// host's cores, upload weights.
#include "weft/base/casts.h"
#include "weft/base/check.h"
#include "weft/train/program/program_pieces.h"

namespace weft::train {

using base::at;
using schedule::Node;
using tensor::Stream;
using tensor::Tensor;

struct Program::OffloadedPart {
  const optim::AdamW& adamw;
  tensor::Range elements;  // range of its state
  const Staged& staged;

  Tensor part_of(const Tensor& all) const { return all.range(elements.begin, {elements.count}); }
  Tensor gradients() const { return staged.gradients.range(0, {elements.count}); }
  Tensor weights() const { return adamw.new_weights(elements, staged.weights); }
};

void Program::make_staging() {
  std::int64_t largest = 0;
  std::size_t slots = 0;
  for (const schedule::OffloadedAnatomy& one : anatomy_.offloaded) {
    largest = std::max(largest, one.elements.count);
    slots = std::max(slots, at(one.slot) + 1);
  }
  const auto make = [&](tensor::DType dtype) {
    return Tensor::host_visible(pool_, dtype, {largest}, tensor::Tag::Offloaded);
  };
  const tensor::DType weights = model::dtype_of(config_.model.params_dtype);
  for (std::size_t slot = 0; slot < slots; ++slot) {
    Staged& staged = staged_.emplace_back();
    staged.gradients = make(model::dtype_of(derive::main_gradients(config_)));
    if (weights != tensor::DType::F32) staged.weights = make(weights);
  }
}

Program::OffloadedPart Program::offloaded(const Node& node) const {
  const schedule::OffloadedAnatomy& one = schedule::offloaded_of(anatomy_, node);
  const model::Home home =
      one.part == schedule::Part::Dense ? model::Home::Dense : model::Home::Expert;
  const int bucket = one.bucket == schedule::kNone ? 0 : one.bucket;
  for (const OptimizerShare& share : optimizers_) {
    if (share.home != home || share.offloaded != bucket) continue;
    return {.adamw = share.adamw, .elements = one.elements, .staged = staged_[at(one.slot)]};
  }
  UNREACHABLE("no optimizer state for {}", schedule::print(node));
}

Program::Bodies Program::Pieces::download() {
  return {.step = [](Program& p, const Node& node, Stream& stream) {
    p.download_gradients(node, stream);
  }};
}

Program::Bodies Program::Pieces::update() {
  return {.step = [](Program& p, const Node& node, Stream&) { p.update_on_host(node); }};
}

Program::Bodies Program::Pieces::upload() {
  return {
      .step = [](Program& p, const Node& node, Stream& stream) { p.upload_weights(node, stream); }};
}

void Program::download_gradients(const Node& node, Stream& stream) {
  const OffloadedPart part = offloaded(node);
  const Tensor from = part.part_of(part.adamw.gradients());
  stream.download(part.gradients().raw(stream), from.raw(stream), from.bytes());
}

// Runs on the issuing thread, before the next node is issued.
void Program::update_on_host(const Node& node) {
  if (!changes_weights()) return;
  const OffloadedPart part = offloaded(node);
  part.adamw.apply_on_host(*host_,
                           config_.optimizer,
                           applied(),
                           part.elements,
                           part.gradients(),
                           part.weights());
}

void Program::upload_weights(const Node& node, Stream& stream) {
  if (!changes_weights()) return;
  const OffloadedPart part = offloaded(node);
  const Tensor from = part.weights(), to = part.part_of(part.adamw.weights());
  stream.upload(to.raw(stream), from.raw(stream), to.bytes());
}

}  // namespace weft::train
