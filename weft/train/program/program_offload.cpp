// Tensors offloaded to host memory between forward and backward.
#include <utility>

#include "weft/base/check.h"
#include "weft/train/program/program_pieces.h"

namespace weft::train {
namespace {

using schedule::Direction;
using schedule::Node;
using tensor::Tag;
using tensor::Tensor;

Node way_out_of(Node node) {
  node.direction = Direction::O;
  return node;
}

}  // namespace

// Tensors that the part did not make are undefined on both sides.
void Program::go_out(const Node& node, tensor::Stream& stream) {
  const auto made = bodies_of(node).made;
  CHECK(made != nullptr, "{} makes nothing that can be offloaded", schedule::print(node));
  std::vector<Tensor>& copies = offloaded_[node];
  for (const Tensor* tensor : made(*this, node)) {
    Tensor& copy = copies.emplace_back();
    if (!tensor->defined()) continue;
    copy = Tensor::host_visible(pool_, tensor->dtype(), tensor->shape(), Tag::Offloaded);
    kernels::copy(stream, copy, *tensor);
  }
}

// The copies decide which tensors are defined; that may have changed since.
void Program::come_in(const Node& node, tensor::Stream& stream) {
  const Bodies bodies = bodies_of(node);
  auto found = offloaded_.extract(way_out_of(node));
  CHECK(!found.empty(), "{} never went out", schedule::print(node));
  const std::vector<Tensor*> made = bodies.made(*this, node);
  const std::vector<Tensor>& copies = found.mapped();
  CHECK(copies.size() == made.size(), "{} of {} come in", made.size(), copies.size());
  for (std::size_t i = 0; i < copies.size(); ++i) {
    if (!copies[i].defined()) continue;
    *made[i] = Tensor(pool_, copies[i].dtype(), copies[i].shape(), Tag::Activations);
    kernels::copy(stream, *made[i], copies[i]);
  }
  if (bodies.take_back != nullptr) bodies.take_back(*this, node, context(node, stream));
}

}  // namespace weft::train
