// Tensors at the ends of layers and chunks, and the exchange between pipeline stages.
#include "weft/base/casts.h"
#include "weft/base/check.h"
#include "weft/train/program/program_pieces.h"

namespace weft::train {
namespace {

using schedule::Chunk;
using schedule::Direction;
using schedule::Node;
using schedule::Piece;
using tensor::Reuse;
using tensor::Stream;
using tensor::Tensor;

using base::at;

// True if a node's output is the chunk's output and leaves the rank.
bool sends_output(const Chunk& chunk, const Node& node) {
  const bool whole = node.layer == schedule::kNone && chunk.layers == 0;
  return chunk.sends() && (whole || node.layer + 1 == chunk.end_layer());
}

// True if the gradient of a node's input leaves the rank.
bool sends_gradient(const Chunk& chunk, const Node& node, Piece first) {
  const bool whole = node.layer == schedule::kNone && chunk.layers == 0;
  return chunk.receives() && (whole || (node.layer == chunk.first_layer && node.piece == first));
}

}  // namespace

Reuse Program::memory_of_output(const Node& node) const {
  const Chunk& chunk = schedule::chunk_of(anatomy_, node);
  bool away = false;
  if (node.direction == Direction::F) away = sends_output(chunk, node);
  if (node.direction == Direction::D) {
    const Piece first =
        chunk.layers == 0 ? node.piece : anatomy_.layers[at(chunk.first_layer)].front().piece;
    away = sends_gradient(chunk, node, first);
  }
  return away ? Reuse::Exchanged : Reuse::InOrder;
}

model::ChunkState& Program::chunk(const Node& node) {
  const Chunk& chunk = schedule::chunk_of(anatomy_, node);
  return micro_batch(node).chunks[at(chunk.index)];
}

// Activations go to the rank of the next stage, gradients to the rank of the previous stage. A sent
// tensor returns to the pool at once; a received tensor is an ordinary activation.
void Program::exchange(const Node& node, Stream& stream) {
  const bool forward = node.direction == Direction::F;
  comm::Communicator& pipeline = forward ? *groups_.pp_forward : *groups_.pp_backward;
  const Chunk& own = schedule::chunk_of(anatomy_, node);
  const int towards = forward ? own.to : own.from, from = forward ? own.from : own.to;
  if (node.piece == anatomy_.send.piece) {
    Tensor& ready = forward ? chunk(node).y_TD : chunk(node).dx_TD;
    pipeline.send(stream, ready, towards);
    return ready.reset();
  }
  Tensor come(pool_,
              model::dtype_of(config_.model.params_dtype),
              {micro_batch(node).tokens, config_.model.hidden_size},
              tensor::Tag::Activations,
              Reuse::Exchanged);
  pipeline.receive(stream, come, from);
  forward ? take_input(node, std::move(come)) : take_gradient(node, std::move(come));
}

void Program::take_input(const Node& node, Tensor x_TD) {
  const Chunk& own = schedule::chunk_of(anatomy_, node);
  Tensor& place =
      own.layers > 0 ? micro_batch(node).layers[at(own.first_layer)].x_TD : chunk(node).y_TD;
  place = std::move(x_TD);
}

void Program::hand_on(const Node& node, Tensor y_TD) {
  const int next = node.layer + 1;
  const Chunk& own = schedule::chunk_of(anatomy_, node);
  const bool last = next == own.end_layer() && !own.output_stays_on_rank;
  (last ? chunk(node).y_TD : micro_batch(node).layers[at(next)].x_TD) = std::move(y_TD);
}

void Program::take_gradient(const Node& node, Tensor dy_TD) {
  const Chunk& own = schedule::chunk_of(anatomy_, node);
  Tensor& place =
      own.layers > 0 ? micro_batch(node).layers[at(own.end_layer() - 1)].dy_TD : chunk(node).dx_TD;
  place = std::move(dy_TD);
}

void Program::hand_back(const Node& node, Tensor dx_TD) {
  const Chunk& own = schedule::chunk_of(anatomy_, node);
  const bool first = node.layer == own.first_layer && !own.input_stays_on_rank;
  Tensor& place = first ? chunk(node).dx_TD : micro_batch(node).layers[at(node.layer - 1)].dy_TD;
  place = std::move(dx_TD);
}

Tensor Program::layer_input(const Node& node, int layer) {
  const Chunk& own = schedule::chunk_of(anatomy_, node);
  const bool out = layer == own.end_layer() && !own.output_stays_on_rank;
  return out ? chunk(node).y_TD : micro_batch(node).layers[at(layer)].x_TD;
}

Tensor& Program::next_input(const Node& node) {
  return micro_batch(node).layers[at(node.layer + 1)].x_TD;
}

Program::Bodies Program::Pieces::exchange() {
  const Body exchange = [](Program& p, const Node& node, const model::Context& context) {
    p.exchange(node, context.stream);
  };
  return {.forward = exchange, .input_gradient = exchange};
}

}  // namespace weft::train
