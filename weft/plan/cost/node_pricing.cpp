#include "weft/plan/cost/node_pricing.h"

#include "weft/plan/cost/kernel_work.h"
#include "weft/plan/cost/layer_time.h"
#include "weft/plan/hardware/wire_time.h"

namespace weft::plan {
namespace {

using schedule::Direction;
using schedule::Entry;
using schedule::kNone;
using schedule::Lane;
using schedule::Node;
using schedule::Part;
using schedule::Piece;

// Indices of nodes outside of layers.
constexpr std::int64_t kEmbedPlace = -1, kHeadPlace = -2;

// Recomputation costs as the forward.
Direction priced_as(Direction direction) {
  return direction == Direction::R ? Direction::F : direction;
}

// Number of slices or steps that share the piece with a node.
double nodes_beside(const Node& node, const schedule::Anatomy& anatomy) {
  if (node.slice == kNone) return 1;
  const schedule::PieceAnatomy& piece = schedule::piece_of(anatomy, node);
  return piece.runs_in_steps(node.direction) ? piece.steps->count : anatomy.flow.slices;
}

bool is_exchange_lane(Lane lane) { return lane == Lane::Tp || lane == Lane::Cp; }

}  // namespace

NodePricing::NodePricing(const config::Config& config,
                         const Hardware& hardware,
                         const Routing& routing)
    : config_(config), hardware_(hardware), routing_(routing) {}

NodePricing::NodePricing(const config::Config& config,
                         const Hardware& hardware,
                         const Routing& routing,
                         std::int64_t layer)
    : config_(config), hardware_(hardware), routing_(routing), stands_for_(layer) {}

void NodePricing::note(const Entry& entry) {
  const Node& node = entry.node;
  if (node.part != Part::None) seen_[{node.piece, node.direction}][node.part] = true;
  if (is_exchange_lane(entry.lane) && node.micro_batch == 0) {
    ++exchanges_[{node.layer, node.direction, entry.lane}];
  }
}

std::optional<exec::sim::Cost> NodePricing::cost(const Entry& entry,
                                                 const schedule::Anatomy& anatomy) {
  const Node& node = entry.node;
  if (node.micro_batch == kNone || schedule::is_exchange(node)) return std::nullopt;
  const bool is_end = node.layer == kNone;
  if (is_end && stands_for_) return exec::sim::Cost{};
  const double share = 1.0 / nodes_beside(node, anatomy);
  if (node.piece == Piece::Dispatch || node.piece == Piece::Combine) {
    return exec::sim::Cost{.seconds = costs_at(node).wire * share,
                           .kind = trace::SpanKind::Communication};
  }
  if (is_exchange_lane(entry.lane)) {
    const bool is_products = entry.lane == Lane::Tp && !is_end;
    return exec::sim::Cost{
        .seconds = is_products ? product_exchange_seconds(node, anatomy) : exchange_seconds(entry),
        .kind = trace::SpanKind::Communication};
  }
  if (entry.lane != Lane::Compute) return std::nullopt;
  const PieceCosts& costs = costs_at(node).pieces;
  const auto found = costs.find({node.piece, priced_as(node.direction)});
  if (found == costs.end()) return std::nullopt;
  const PieceCost& cost = found->second;
  const double seconds = node.part == Part::None ? cost.all : seconds_of_part(node, cost);
  const bool computes = cost.products > cost.all / 2;
  return exec::sim::Cost{.seconds = seconds * share,
                         .kind = computes ? trace::SpanKind::Gemm : trace::SpanKind::Memory};
}

std::int64_t NodePricing::layer_meant(int layer) const { return stands_for_.value_or(layer); }

// Time of a tensor-parallel exchange of a layer's tokens, or of one step of it. Exchanges of
// routing counts are negligible.
double NodePricing::product_exchange_seconds(const Node& node, const schedule::Anatomy& anatomy) {
  if (node.part != Part::Gather && node.part != Part::Scatter) return 0;
  const schedule::PieceAnatomy& piece = schedule::piece_of(anatomy, node);
  const bool in_steps = piece.runs_in_steps(node.direction);
  return costs_at(node).tp / (in_steps ? piece.steps->count : 1);
}

// Equal share of a layer's context-parallel exchanges in one direction. At an end of the model: of
// the tensor-parallel exchanges. A recomputed node is one exchange.
double NodePricing::exchange_seconds(const Entry& entry) {
  const Node& node = entry.node;
  const LayerCosts& costs = costs_at(node);
  const Direction direction = priced_as(node.direction);
  const bool forward = direction == Direction::F, tensor = entry.lane == Lane::Tp;
  const auto nodes = exchanges_.find({node.layer, direction, entry.lane});
  if (nodes == exchanges_.end()) return 0;
  const double all =
      tensor ? (forward ? costs.tp_f : costs.tp_d) : (forward ? costs.cp_f : costs.cp_d);
  return all / nodes->second;
}

// Time of a part, including parts without a node. Recomputation uses the forward's split, since it
// need not run all parts.
double NodePricing::seconds_of_part(const Node& node, const PieceCost& cost) const {
  const auto own = cost.parts.find(node.part);
  const auto nodes = seen_.find({node.piece, priced_as(node.direction)});
  if (own == cost.parts.end() || nodes == seen_.end()) return 0;
  double told = 0;
  for (const auto& [part, is_seen] : nodes->second) {
    const auto found = cost.parts.find(part);
    if (found != cost.parts.end()) told += found->second;
  }
  return told > 0 ? own->second * cost.all / told : 0;
}

NodePricing::PieceCosts NodePricing::costs_of_kernels(const std::vector<Kernel>& kernels) const {
  PieceCosts costs;
  for (const Kernel& kernel : kernels) {
    const double seconds = device_seconds(kernel, hardware_);
    PieceCost& cost = costs[{kernel.piece, kernel.direction}];
    cost.all += seconds;
    cost.parts[kernel.part] += seconds;
    if (kernel.kind != KernelKind::Memory) cost.products += seconds;
  }
  return costs;
}

NodePricing::LayerCosts NodePricing::costs_of_layer(std::int64_t layer) const {
  const double imbalance = imbalance_of(routing_, config_.model, layer);
  const Workload work = workload_on(hardware_, config_, imbalance);
  const double one = work.tp > 1 ? tensor_exchange_seconds(config_, work, hardware_) : 0;
  LayerCosts costs;
  if (layer < 0) {
    costs.pieces = costs_of_kernels(layer == kHeadPlace ? head_kernels(config_, work)
                                                        : embed_kernels(config_, work));
    costs.tp_f = 2 * one;
    costs.tp_d = 3 * one;
    return costs;
  }
  costs.pieces = costs_of_kernels(layer_kernels(config_, work, layer));
  if (config_.model.is_moe_layer(layer)) {
    costs.wire = dispatch_seconds(config_.model, work, hardware_);
  }
  costs.tp = one;
  costs.cp_f = work.cp > 1 ? context_exchange_seconds(config_, work, hardware_) : 0;
  costs.cp_d = 2 * costs.cp_f;
  return costs;
}

const NodePricing::LayerCosts& NodePricing::costs_at(const Node& node) {
  const bool is_end = node.layer == kNone;
  const std::int64_t place =
      is_end ? (node.piece == Piece::Head ? kHeadPlace : kEmbedPlace) : layer_meant(node.layer);
  const auto found = layers_.find(place);
  if (found != layers_.end()) return found->second;
  return layers_.emplace(place, costs_of_layer(place)).first->second;
}

}  // namespace weft::plan
