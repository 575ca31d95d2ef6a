#include "weft/schedule/passes/rows_ahead.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "weft/schedule/dependencies.h"
#include "weft/schedule/passes/rewrite.h"

namespace weft::schedule {
namespace {

bool is_recomputed_dispatch(const Node& node) {
  return node.direction == Direction::R && node.piece == Piece::Dispatch;
}

class RowsAhead {
 public:
  RowsAhead(NamedEntries entries, const Anatomy& anatomy, int micro_batches)
      : entries_(std::move(entries)),
        anatomy_(anatomy),
        micro_batches_(micro_batches),
        behind_(entries_.size()),
        is_moved_(entries_.size(), false) {
    for (std::size_t i = 0; i < entries_.size(); ++i) note(i);
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      if (is_recomputed_dispatch(entries_[i].node)) move(i);
    }
  }

  NamedEntries written() const {
    NamedEntries order;
    order.reserve(entries_.size());
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      if (!is_moved_[i]) order.push_back(entries_[i]);
      // Their waits are their requirements.
      for (const std::size_t moved : behind_[i]) {
        order.push_back({.node = entries_[moved].node, .waits = {}});
      }
    }
    return order;
  }

 private:
  using Backward = std::pair<int, int>;  // layer, micro-batch

  void note(std::size_t i) {
    const Node& node = entries_[i].node;
    places_.emplace(node, i);
    const bool is_anchor = node.direction == Direction::D && node.piece == Piece::Combine;
    if (is_anchor) anchors_.try_emplace({node.layer, node.micro_batch}, i);
  }

  void move(std::size_t dispatch) {
    const Node& node = entries_[dispatch].node;
    const auto anchor = anchors_.find({node.layer, node.micro_batch});
    if (anchor == anchors_.end() || anchor->second > dispatch) return;
    std::vector<std::size_t> moved;
    if (!collect(dispatch, anchor->second, moved)) return;
    std::ranges::sort(moved);
    for (const std::size_t i : moved) {
      is_moved_[i] = true;
      behind_[anchor->second].push_back(i);
    }
  }

  // Collects an entry and its requirements behind the anchor. False if one of those is not a
  // recomputation: no entry can be moved then.
  bool collect(std::size_t entry, std::size_t anchor, std::vector<std::size_t>& moved) const {
    if (entry < anchor || is_moved_[entry] || std::ranges::find(moved, entry) != moved.end()) {
      return true;
    }
    const Node& node = entries_[entry].node;
    if (node.direction != Direction::R) return false;
    moved.push_back(entry);
    return std::ranges::all_of(
        required(anatomy_, node, micro_batches_, StepKind::Training),
        [&](const Node& need) { return collect(places_.at(need), anchor, moved); });
  }

  NamedEntries entries_;
  const Anatomy& anatomy_;
  const int micro_batches_;
  std::vector<std::vector<std::size_t>> behind_;  // entries to insert behind each entry
  std::vector<bool> is_moved_;
  std::unordered_map<Node, std::size_t, NodeHash> places_;
  std::map<Backward, std::size_t> anchors_;
};

}  // namespace

Graph bring_rows_ahead(Graph graph, const Anatomy& recomputing, int micro_batches) {
  const bool has_rows = std::ranges::any_of(graph.entries, [](const Entry& entry) {
    return is_recomputed_dispatch(entry.node);
  });
  if (!has_rows) return graph;
  const RowsAhead ahead(named_entries(graph), recomputing, micro_batches);
  return write(ahead.written(), recomputing, micro_batches);
}

}  // namespace weft::schedule
