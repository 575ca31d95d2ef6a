#include "weft/schedule/passes/offload.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "weft/base/casts.h"
#include "weft/schedule/dependencies.h"
#include "weft/schedule/passes/returns_ahead.h"
#include "weft/schedule/passes/rewrite.h"

namespace weft::schedule {
namespace {

using base::at;

// Finds a place for every copy in an order of entries.
class CopyPlaces {
 public:
  CopyPlaces(const NamedEntries& entries, const Anatomy& anatomy, int micro_batches)
      : entries_(entries),
        anatomy_(anatomy),
        micro_batches_(micro_batches),
        behind_(entries.size()),
        in_front_(entries.size()) {
    for (std::size_t i = 0; i < entries.size(); ++i) place(i);
  }

  NamedEntries written() const {
    NamedEntries order;
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      std::ranges::copy(in_front_[i], std::back_inserter(order));
      order.push_back(entries_[i]);
      std::ranges::copy(behind_[i], std::back_inserter(order));
    }
    return order;
  }

 private:
  using PartName = std::pair<Piece, Part>;

  void place(std::size_t i) {
    const Node& node = entries_[i].node;
    for (const Node& need : required(anatomy_, node, micro_batches_, StepKind::Training)) {
      if (need.direction == Direction::I) come_in(need, i);
    }
    if (node.direction == Direction::F) go_out(i);
    latest_[{node.piece, node.part}] = i;
    places_.emplace(node, i);
  }

  // For a stepwise part: after its last step.
  void go_out(std::size_t i) {
    const Node& node = entries_[i].node;
    if (row_of(node.piece).scope != Scope::Layer) return;
    const PieceAnatomy& piece = piece_of(anatomy_, node);
    if (!piece.is_offloaded) return;
    if (piece.steps && node.slice != piece.steps->last()) return;
    Node out = node;
    out.direction = Direction::O;
    if (piece.steps) out.slice = kNone;
    behind_[i].push_back({.node = out, .waits = {}});
    places_.emplace(out, i);
  }

  // Place of a return: before the entry that needed the previous one in this backward. The first
  // return of a backward comes before the last earlier entry of its reader's kind. Never before its
  // own requirements.
  void come_in(const Node& in, std::size_t needed) {
    if (!come_.insert(in).second) return;
    std::size_t earliest = 0;
    for (const Node& need : required(anatomy_, in, micro_batches_, StepKind::Training)) {
      earliest = std::max(earliest, places_.at(need) + 1);
    }
    const Node& reader = entries_[needed].node;
    const auto before =
        needed_before_
            .try_emplace(
                {{in.piece, in.part}, {in.micro_batch, chunk_of_layer(anatomy_, in.layer).index}},
                latest_[{reader.piece, reader.part}])
            .first;
    const std::size_t place = std::clamp(before->second, earliest, needed);
    before->second = needed;
    in_front_[place].push_back({.node = in, .waits = {}});
  }

  const NamedEntries& entries_;
  const Anatomy& anatomy_;
  const int micro_batches_;
  std::vector<NamedEntries> behind_, in_front_;
  std::unordered_map<Node, std::size_t, NodeHash> places_;
  std::unordered_set<Node, NodeHash> come_;
  std::map<PartName, std::size_t> latest_;  // last entry of each piece or part
  // Last entry that needed a part, per backward of a micro-batch and chunk.
  std::map<std::pair<PartName, std::pair<int, int>>, std::size_t> needed_before_;
};

}  // namespace

bool is_offloaded_nth(std::size_t place, double share) {
  const auto up_to = [&](std::size_t places) {
    return std::floor(static_cast<double>(places) * share + 1e-9);
  };
  return up_to(place + 1) > up_to(place);
}

std::vector<PiecePlace> offloadable(const Anatomy& anatomy,
                                    const Chunk& chunk,
                                    const PieceName& name) {
  std::vector<PiecePlace> found;
  const int end = chunk.end_layer() - (chunk.has_head ? 1 : 0);
  for (int layer = chunk.first_layer; layer < end; ++layer) {
    const std::vector<PieceAnatomy>& pieces = anatomy.layers[at(layer)];
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const bool leaves_chunk = i + 1 == pieces.size() && layer + 1 == chunk.end_layer();
      const bool is_kept =
          pieces[i].is(name) && pieces[i].absent_bytes() != Bytes{} && !pieces[i].is_recomputed;
      if (is_kept && !leaves_chunk) found.push_back({.layer = layer, .index = i});
    }
  }
  return found;
}

Anatomy with_offloading(Anatomy anatomy, std::span<const OffloadedPart> parts) {
  for (const OffloadedPart& part : parts) {
    for (const Chunk& chunk : anatomy.chunks) {
      const std::vector<PiecePlace> places = offloadable(anatomy, chunk, part.name);
      for (std::size_t i = 0; i < places.size(); ++i) {
        if (!is_offloaded_nth(i, part.share)) continue;
        anatomy.layers[at(places[i].layer)][places[i].index].is_offloaded = true;
      }
    }
    const bool is_new =
        std::ranges::find(anatomy.offloaded_pieces, part.name) == anatomy.offloaded_pieces.end();
    if (is_new) anatomy.offloaded_pieces.push_back(part.name);
  }
  return anatomy;
}

Graph offload(const Graph& graph, const Anatomy& offloading, int micro_batches, const Load& load) {
  const NamedEntries entries = named_entries(graph);
  const NamedEntries order = CopyPlaces(entries, offloading, micro_batches).written();
  return write(bring_ahead(order, offloading, micro_batches, load), offloading, micro_batches);
}

}  // namespace weft::schedule
