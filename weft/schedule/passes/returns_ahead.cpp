#include "weft/schedule/passes/returns_ahead.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "weft/base/casts.h"
#include "weft/schedule/dependencies.h"
#include "weft/schedule/memory/memory.h"

namespace weft::schedule {
namespace {

using base::at;

// A longer lead would hold memory without helping a slow link.
constexpr int kMostLayersAhead = 4;

class Returns {
 public:
  Returns(const NamedEntries& order, const Anatomy& anatomy, int micro_batches, const Load& load)
      : order_(order),
        anatomy_(anatomy),
        micro_batches_(micro_batches),
        load_(load),
        in_front_(order.size()) {
    for (std::size_t i = 0; i < order.size(); ++i) {
      places_.emplace(order[i].node, i);
      if (lane_of(anatomy, order[i].node) == Lane::Compute) compute_ = order[i].node;
      compute_until_.push_back(compute_);
    }
    look_for_room();
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (is_return(i)) move(i);
    }
  }

  NamedEntries written() const {
    NamedEntries order;
    order.reserve(order_.size());
    for (std::size_t i = 0; i < order_.size(); ++i) {
      std::ranges::copy(in_front_[i], std::back_inserter(order));
      if (!is_return(i)) order.push_back(order_[i]);
    }
    return order;
  }

 private:
  bool is_return(std::size_t i) const { return order_[i].node.direction == Direction::I; }

  // Room beside every entry: the maximum kept bytes of its kind, less those kept before or after
  // it.
  void look_for_room() {
    Graph graph;
    for (const NamedEntry& entry : order_) {
      graph.entries.push_back(
          {.node = entry.node, .lane = lane_of(anatomy_, entry.node), .waits = {}});
    }
    const std::vector<std::int64_t> kept =
        kept_after_each(graph, anatomy_, [&](const Node&) { return load_; });
    const auto beside = [&](std::size_t i) { return std::max(i == 0 ? 0 : kept[i - 1], kept[i]); };
    std::map<std::tuple<Piece, Part, Direction>, std::int64_t> most;
    for (std::size_t i = 0; i < order_.size(); ++i) {
      const Node& node = order_[i].node;
      std::int64_t& known = most[{node.piece, node.part, node.direction}];
      known = std::max(known, beside(i));
    }
    for (std::size_t i = 0; i < order_.size(); ++i) {
      const Node& node = order_[i].node;
      const bool has_buffers = !is_copy(graph.entries[i].lane);
      room_.push_back(has_buffers ? most[{node.piece, node.part, node.direction}] - beside(i)
                                  : std::numeric_limits<std::int64_t>::max());
    }
  }

  // Copies keep their order.
  void move(std::size_t from) {
    const Node& in = order_[from].node;
    std::size_t earliest = std::max<std::size_t>(latest_, 1);
    for (const Node& need : required(anatomy_, in, micro_batches_, StepKind::Training)) {
      earliest = std::max(earliest, places_.at(need) + 1);
    }
    const std::int64_t bytes =
        piece_of(anatomy_, in).absent_bytes().of(share_of(anatomy_, in, load_));
    std::size_t to = from;
    while (to > earliest && room_[to - 1] >= bytes && !is_too_early(order_[to - 1].node, in)) --to;
    for (std::size_t i = to; i < from; ++i) {
      if (!is_copy(lane_of(anatomy_, order_[i].node))) room_[i] -= bytes;
    }
    latest_ = to;
    // The copy waits for the compute before it, whose memory it may get.
    NamedEntry copy{.node = in, .waits = {}};
    if (compute_until_[to - 1]) copy.waits.push_back(*compute_until_[to - 1]);
    in_front_[to].push_back(std::move(copy));
  }

  static bool is_too_early(const Node& passed, const Node& in) {
    return passed.direction == Direction::D && passed.micro_batch == in.micro_batch &&
           passed.layer > in.layer + kMostLayersAhead;
  }

  const NamedEntries& order_;
  const Anatomy& anatomy_;
  const int micro_batches_;
  const Load load_;
  std::vector<NamedEntries> in_front_;
  std::unordered_map<Node, std::size_t, NodeHash> places_;
  std::optional<Node> compute_;                     // last so far
  std::vector<std::optional<Node>> compute_until_;  // by entry: last compute before it
  std::vector<std::int64_t> room_;                  // by entry, in bytes
  std::size_t latest_ = 0;                          // place of the last moved copy
};

}  // namespace

NamedEntries bring_ahead(const NamedEntries& order,
                         const Anatomy& offloading,
                         int micro_batches,
                         const Load& load) {
  return Returns(order, offloading, micro_batches, load).written();
}

}  // namespace weft::schedule
