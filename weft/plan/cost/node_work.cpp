#include "weft/plan/cost/node_work.h"

#include "weft/base/casts.h"
#include "weft/exec/sim/costs.h"
#include "weft/plan/cost/kernel_work.h"
#include "weft/plan/cost/nominal_costs.h"
#include "weft/plan/cost/nominal_work.h"
#include "weft/schedule/meeting.h"

namespace weft::plan {
namespace {

using schedule::Direction;
using schedule::Entry;
using schedule::kNone;
using schedule::Node;
using schedule::Part;
using schedule::Piece;

constexpr int kEmbeddingLayer = -1, kHeadLayer = -2;  // indices in place of layer numbers
constexpr double kAddedBytes = 8;                     // gradient that is read and written

// Links of one byte per second: a price at these rates is a number of bytes.
constexpr NominalRates kBytes{.link_bytes_per_second = 1,
                              .network_bytes_per_second = 1,
                              .link_latency_seconds = 0};

config::Config on_free_links(config::Config config) {
  config.fabric = {};
  return config;
}

NodeWork work_of_kernel(const Kernel& kernel, double element_bytes) {
  switch (kernel.kind) {
    case KernelKind::Product: {
      // A weight gradient is the (n, k) of a product that sums over its rows.
      const bool is_gradient = kernel.direction == Direction::W;
      const double weights =
          kernel.groups * (is_gradient ? kernel.m * kernel.n : kernel.n * kernel.k);
      return {.product_flops = 2 * kernel.groups * kernel.m * kernel.n * kernel.k,
              .products = kernel.groups,
              .weight_bytes = weights * (is_gradient ? kAddedBytes : element_bytes)};
    }
    case KernelKind::Attention:
      return {.attention_flops = kernel.flops};
    case KernelKind::Memory:
      break;
  }
  return {.memory_bytes = kernel.bytes};
}

double scale(double own, double all, double told) { return told > 0 ? own * all / told : own; }

// True for compute nodes. Without peers nothing travels, and the host computes on numbers.
bool computes_on_tokens(const Node& node) {
  const schedule::PieceRow& row = schedule::row_of(node.piece);
  const bool is_of_model =
      row.scope == schedule::Scope::Layer || row.scope == schedule::Scope::ChunkEnd;
  const bool brings_rows =
      row.members != schedule::Members::Rank || row.place == schedule::Place::Dispatch;
  return node.micro_batch != kNone && is_of_model && !brings_rows;
}

// Work of one pipeline rank's compute nodes.
class NodeWorks {
 public:
  NodeWorks(const config::Config& config, const schedule::RankPlan& plan)
      : config_(config),
        anatomy_(plan.anatomy),
        work_(workload_of(config)),
        nominal_(config, plan.anatomy) {
    for (const Entry& entry : plan.training.entries) {
      const Node& node = entry.node;
      if (node.part != Part::None) parts_[{node.piece, node.direction}][node.part] = true;
    }
  }

  // Work of a node, at least one pass over its tokens: also a node without known kernels moves
  // them.
  NodeWork of(const Node& node) {
    NodeWork work = of_kernels(node);
    if (work.memory_bytes > 0) {
      work.memory_bytes += nominal_.added_gradient_bytes(node);
      return work;
    }
    const Work nominal = nominal_.of(node);
    work.memory_bytes = nominal.memory_bytes;
    if (work.memory_bytes == 0 && computes_on_tokens(node)) {
      work.memory_bytes = work_.own_tokens * base::number(config_.model.hidden_size) *
                          nominal_.element_bytes() / nodes_beside(node);
    }
    return work;
  }

 private:
  using Works = std::map<Part, NodeWork>;
  using Place = std::pair<Piece, Direction>;

  NodeWork of_kernels(const Node& node) {
    if (node.micro_batch == kNone) return {};
    const Direction direction = node.direction == Direction::R ? Direction::F : node.direction;
    const std::map<Place, Works>& works = layer_works(node);
    const auto found = works.find({node.piece, direction});
    if (found == works.end()) return {};
    NodeWork all, told, own;
    const std::map<Part, bool>& nodes = parts_[{node.piece, node.direction}];
    for (const auto& [part, work] : found->second) {
      all += work;
      if (part == node.part) own += work;
      if (nodes.contains(part)) told += work;
    }
    if (node.part == Part::None) {
      own = all;
    } else {
      // Kernels of parts without a node count with the other parts.
      own.product_flops = scale(own.product_flops, all.product_flops, told.product_flops);
      own.products = scale(own.products, all.products, told.products);
      own.weight_bytes = scale(own.weight_bytes, all.weight_bytes, told.weight_bytes);
      own.attention_flops = scale(own.attention_flops, all.attention_flops, told.attention_flops);
      own.memory_bytes = scale(own.memory_bytes, all.memory_bytes, told.memory_bytes);
    }
    return own *= 1 / nodes_beside(node);
  }

  // Number of slices or steps that share the piece with a node.
  double nodes_beside(const Node& node) const {
    if (node.slice == kNone) return 1;
    const schedule::PieceAnatomy& piece = schedule::piece_of(anatomy_, node);
    return piece.runs_in_steps(node.direction) ? piece.steps->count : anatomy_.flow.slices;
  }

  const std::map<Place, Works>& layer_works(const Node& node) {
    const int place = node.layer != kNone         ? node.layer
                      : node.piece == Piece::Head ? kHeadLayer
                                                  : kEmbeddingLayer;
    const auto found = layers_.find(place);
    if (found != layers_.end()) return found->second;
    const std::vector<Kernel> kernels = place == kHeadLayer ? head_kernels(config_, work_)
                                        : place == kEmbeddingLayer
                                            ? embed_kernels(config_, work_)
                                            : layer_kernels(config_, work_, place);
    std::map<Place, Works>& works = layers_[place];
    for (const Kernel& kernel : kernels) {
      works[{kernel.piece, kernel.direction}][kernel.part] +=
          work_of_kernel(kernel, nominal_.element_bytes());
    }
    return works;
  }

  const config::Config& config_;
  const schedule::Anatomy& anatomy_;
  const Workload work_;
  const NominalWork nominal_;
  std::map<Place, std::map<Part, bool>> parts_;  // parts with a node of their own
  std::map<int, std::map<Place, Works>> layers_;
};

}  // namespace

NodeWork& NodeWork::operator+=(const NodeWork& other) {
  product_flops += other.product_flops;
  products += other.products;
  weight_bytes += other.weight_bytes;
  attention_flops += other.attention_flops;
  memory_bytes += other.memory_bytes;
  link_bytes += other.link_bytes;
  links += other.links;
  other_seconds += other.other_seconds;
  return *this;
}

NodeWork& NodeWork::operator*=(double factor) {
  product_flops *= factor;
  products *= factor;
  weight_bytes *= factor;
  attention_flops *= factor;
  memory_bytes *= factor;
  link_bytes *= factor;
  links *= factor;
  other_seconds *= factor;
  return *this;
}

bool NodeWork::has_any() const {
  return product_flops > 0 || attention_flops > 0 || memory_bytes > 0 || links > 0 ||
         other_seconds > 0;
}

WorkTable node_works(const config::Config& config,
                     const grid::Grid& grid,
                     const std::vector<schedule::RankPlan>& plans) {
  const config::Config free = on_free_links(config);
  const exec::sim::CostTable bytes = nominal_costs(free, grid, plans, kBytes);
  const exec::sim::CostTable seconds = nominal_costs(free, grid, plans, {});
  WorkTable table;
  for (const schedule::RankPlan& plan : plans) {
    const int rank = plan.anatomy.pp_rank;
    NodeWorks works(config, plan);
    for (const Entry& entry : plan.training.entries) {
      Node row = entry.node;
      row.micro_batch = kNone;
      const auto [place, is_new] = table.try_emplace({rank, row});
      if (!is_new) continue;
      if (schedule::is_meeting(entry)) {
        place->second = {.link_bytes = bytes.find(rank, row)->seconds, .links = 1};
      } else if (entry.lane != schedule::Lane::Compute) {
        place->second = {.other_seconds = seconds.find(rank, row)->seconds};
      } else {
        place->second = works.of(entry.node);
      }
    }
  }
  return table;
}

}  // namespace weft::plan
