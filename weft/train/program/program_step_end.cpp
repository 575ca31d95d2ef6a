// Bodies of the end of a step: gradients are summed, checked and applied.
#include <cmath>

#include "weft/base/check.h"
#include "weft/optim/gradient_norm.h"
#include "weft/train/program/program_pieces.h"

namespace weft::train {
namespace {

using model::Home;
using schedule::Node;
using schedule::Part;
using tensor::Range;
using tensor::Stream;
using tensor::Tensor;

Home home_of(const Node& node) {
  CHECK(node.part == Part::Dense || node.part == Part::Expert, "whose is {}", print(node));
  return node.part == Part::Dense ? Home::Dense : Home::Expert;
}

const model::Bucket& bucket_of(const model::BufferLayout& layout, const Node& node) {
  return layout.buckets.at(node.slice == schedule::kNone ? 0
                                                         : static_cast<std::size_t>(node.slice));
}

Tensor part_of(const Tensor& buffer, const Range& range) {
  return buffer.range(range.begin, {range.count});
}

}  // namespace

Program::Bodies Program::Pieces::narrow() {
  return {.step = [](Program& p, const Node& node, Stream& stream) { p.narrow(node, stream); }};
}

Program::Bodies Program::Pieces::widen() {
  return {.step = [](Program& p, const Node& node, Stream& stream) { p.widen(node, stream); }};
}

Program::Bodies Program::Pieces::reduce() {
  return {.step = [](Program& p, const Node& node, Stream& stream) { p.reduce(node, stream); }};
}

Program::Bodies Program::Pieces::gather() {
  return {.step = [](Program& p, const Node& node, Stream& stream) { p.gather(node, stream); }};
}

// Summed gradients of a bucket, and this rank's part of the sum.
Program::Summed Program::summed(const Node& node) {
  const Home home = home_of(node);
  const model::ParameterBuffer& buffer = parameters_.buffer(home);
  const model::Bucket& bucket = bucket_of(buffer.layout, node);
  Range own{.begin = 0, .count = bucket.elements.count};
  if (buffer.layout.shards > 1) {
    own = buffer.layout.shard(bucket, groups_.instance(home).rank());
    own.begin -= bucket.elements.begin;
  }
  return {.gradients = part_of(buffer.gradients, bucket.elements), .own = own, .home = home};
}

// Converts to the wire's dtype; the copy lives until the sum is back in fp32.
void Program::narrow(const Node& node, Stream& stream) {
  const Tensor gradients = summed(node).gradients;
  Tensor& wire = on_the_wire_[{node.part, node.slice}];
  wire = Tensor(pool_,
                model::dtype_of(derive::gradient_wire(config_)),
                gradients.shape(),
                tensor::Tag::Communication);
  kernels::copy(stream, wire, gradients);
}

// All-reduces a bucket, or reduce-scatters it if ranks share it: first inside the optimizer
// instance, then over all instances.
void Program::reduce(const Node& node, Stream& stream) {
  if (node.part == Part::Copied) return reduce_copied(stream);
  const Summed all = summed(node);
  const auto narrow = on_the_wire_.find({node.part, node.slice});
  const Tensor data = narrow == on_the_wire_.end() ? all.gradients : narrow->second;
  if (all.own.count == data.elements()) {
    return groups_.reduction(all.home).all_reduce(stream, data, comm::Reduce::Sum);
  }
  const Tensor own = part_of(data, all.own);
  groups_.instance(all.home).reduce_scatter(stream, own, data);
  if (comm::Communicator* copies = groups_.shard_copies(all.home)) {
    copies->all_reduce(stream, own, comm::Reduce::Sum);
  }
}

void Program::widen(const Node& node, Stream& stream) {
  const Summed all = summed(node);
  const auto wire = on_the_wire_.find({node.part, node.slice});
  CHECK(wire != on_the_wire_.end(), "nothing travels for {}", print(node));
  kernels::copy(stream, part_of(all.gradients, all.own), part_of(wire->second, all.own));
  on_the_wire_.erase(wire);
}

// Sums gradients of weights that several tensor-parallel ranks hold; each has a part of the sum.
void Program::reduce_copied(Stream& stream) {
  const Tensor& gradients = parameters_.buffer(Home::Dense).gradients;
  for (const model::CopiedRange& copied : copied_) {
    comm::Communicator& holders = copied.parts == 1 ? *groups_.tp : *groups_.key_copies;
    holders.all_reduce(stream, part_of(gradients, copied.elements), comm::Reduce::Sum);
  }
}

void Program::gather(const Node& node, Stream& stream) {
  const Home home = home_of(node);
  const model::ParameterBuffer& buffer = parameters_.buffer(home);
  const model::Bucket& bucket = bucket_of(buffer.layout, node);
  comm::Communicator& group = groups_.instance(home);
  const Range own = buffer.layout.shard(bucket, group.rank());
  group.all_gather(stream, part_of(buffer.weights, bucket.elements), part_of(buffer.weights, own));
}

void Program::gather_weights() {
  if (are_weights_gathered_) return;
  for (const schedule::StepNodeAnatomy& ahead : anatomy_.step_start) {
    if (ahead.node.piece == schedule::Piece::Gather) gather(ahead.node, compute_);
  }
  compute_.synchronize();
  are_weights_gathered_ = true;
}

// Sums the gradients of tied embeddings on both sides.
Program::Bodies Program::Pieces::tie() {
  return {.step = [](Program& p, const Node&, Stream& stream) {
    if (p.anatomy_.tie == schedule::Tie::BetweenStages) {
      const Tensor& gradient = p.parameters_.find("embedding.weight").gradient;
      return p.groups_.embedding->all_reduce(stream, gradient, comm::Reduce::Sum);
    }
    const Tensor& both = p.weights_.embedding_VD.gradient;
    kernels::add(stream, both, both, p.parameters_.tied_head_gradient());
  }};
}

Program::Bodies Program::Pieces::norm() {
  return {.step = [](Program& p, const Node&, Stream& stream) {
    p.ask_for_end();
    const auto square = [&](Home home, const std::vector<Range>& counted, const Tensor& sum) {
      auto write = kernels::Write::Assign;
      for (const Range& range : counted) {
        const Tensor gradients = part_of(p.parameters_.buffer(home).gradients, range);
        kernels::squared_norm(stream, sum, gradients, write);
        write = kernels::Write::Accumulate;
      }
    };
    const int shard = p.groups_.instance(Home::Expert).rank();
    square(Home::Dense, p.counted_, p.totals_.dense_square_norm());
    square(Home::Expert,
           p.parameters_.normed_ranges(Home::Expert, shard),
           p.totals_.expert_square_norm());
  }};
}

Program::Bodies Program::Pieces::totals() {
  return {.step = [](Program& p, const Node&, Stream& stream) {
    p.totals_.gather(stream, *p.groups_.world);
  }};
}

Program::Bodies Program::Pieces::clip() {
  return {.step = [](Program& p, const Node&, Stream&) { p.read_totals(); }};
}

Program::Bodies Program::Pieces::optimizer() {
  return {.step = [](Program& p, const Node& node, Stream& stream) {
    p.apply_gradients(node, stream);
  }};
}

Program::Bodies Program::Pieces::snapshot() {
  return {.step = [](Program& p, const Node&, Stream& stream) {
    if (p.snapshot_ != nullptr) p.snapshot_->copy(stream);
  }};
}

double Program::average() const {
  return config_.ddp.average_in_collective ? 1.0 / groups_.grid.dp() : 1;
}

// A step that overflowed its row budget changes nothing and runs again; a non-finite step changes
// nothing. The next step's first gradients overwrite the old ones.
bool Program::changes_weights() const {
  return effect_ == Effect::Training && !totals_read_.overflowed && is_finite(totals_read_);
}

optim::Applied Program::applied() const {
  const double scale = optim::clip_scale(totals_read_.gradient_norm, config_.optimizer.clip_grad);
  return {.learning_rate = learning_rate_,
          .gradient_scale = scale * average(),
          .step = step_ + 1 - optimizer_begin_};
}

// Applies all gradients; with slices, slice 0 is the first chunk and slice 1 the other chunks.
void Program::apply_gradients(const Node& node, Stream& stream) {
  if (!changes_weights()) return;
  for (const OptimizerShare& share : optimizers_) {
    const bool is_asked = node.slice == schedule::kNone || (node.slice == 0) == (share.chunk == 0);
    if (is_asked && !share.offloaded) share.adamw.apply(stream, config_.optimizer, applied());
  }
  if (!anatomy_.gathered_for.empty()) are_weights_gathered_ = false;
  if (node.slice <= 0) move_biases(stream);
}

// Moves the biases towards even loads, by the rows of the whole step.
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
