#include "weft/schedule/memory/memory.h"

#include <algorithm>
#include <map>

#include "weft/base/casts.h"
#include "weft/schedule/memory/dropping.h"

namespace weft::schedule {
namespace {

using base::at;

Bytes without(Bytes bytes, const Bytes& output) {
  bytes.per_token -= output.per_token;
  return bytes;
}

class Ledger {
 public:
  explicit Ledger(const Anatomy& anatomy) : anatomy_(anatomy) {}

  // Output part of a forward node's kept bytes. An empty chunk sends what it received.
  Bytes output_of(const Node& forward) const {
    const bool passes_through = is_exchange(forward) && chunk_of(anatomy_, forward).layers == 0 &&
                                chunk_of(anatomy_, forward).sends();
    return passes_through ? Bytes{} : piece_of(anatomy_, forward).output;
  }

  // Kept bytes without the output. A stepwise part's bytes are one buffer, kept from its first step
  // on, except a ring's.
  Bytes own_of(const Node& forward) const {
    const PieceAnatomy& piece = piece_of(anatomy_, forward);
    const bool is_apart = piece.part == Part::Ring;
    if (piece.steps && !is_apart && forward.slice > piece.steps->first) return {};
    return without(piece.kept, piece.output);
  }

  // Last backward node that reads a piece's kept bytes. Usually its own W. A part without weights:
  // the W of the following part. An exchange: the gradient of the following part.
  Node end_of(const Node& forward) const {
    Node end = forward;
    end.direction = Direction::W;
    if (piece_of(anatomy_, forward).steps) end.slice = kNone;
    if (piece_of(anatomy_, forward).has_weight_gradient()) return end;
    const PieceAnatomy* follower = follower_of(forward);
    if (follower != nullptr && follower->piece == forward.piece) {
      if (follower->has_weight_gradient()) {
        end.part = follower->part;
        return end;
      }
      if (is_exchange_part(piece_of(anatomy_, forward))) end.part = follower->part;
    }
    end.slice = forward.slice;
    end.direction = Direction::D;
    return end;
  }

  // Last reader of a forward node's output: the weight gradient of its follower in the layer, of
  // the next layer's first piece, or of the head.
  Node reader_of(const Node& forward) const {
    Node reader{.direction = Direction::W, .micro_batch = forward.micro_batch};
    const PieceAnatomy* piece = &anatomy_.head.front();
    const Chunk& chunk = chunk_of(anatomy_, forward);
    const PieceAnatomy* next_in_layer = forward.layer == kNone ? nullptr : follower_of(forward);
    const int next = forward.layer == kNone ? chunk.first_layer : forward.layer + 1;
    if (next_in_layer != nullptr) {
      reader.layer = forward.layer;
      piece = next_in_layer;
    } else if (next < chunk.end_layer() || chunk.output_stays_on_rank) {
      reader.layer = next;
      piece = &anatomy_.layers[at(next)].front();
    }
    reader.piece = piece->piece;
    reader.part = piece->part;
    return reader;
  }

 private:
  static bool is_exchange_part(const PieceAnatomy& piece) {
    return row_of(piece.part).members != Members::Rank;
  }

  const PieceAnatomy* follower_of(const Node& node) const {
    for (const PieceAnatomy& later : pieces_beside(anatomy_, node)) {
      if (follows(later, {node.piece, node.part})) return &later;
    }
    return nullptr;
  }

  const Anatomy& anatomy_;
};

}  // namespace

std::vector<std::int64_t> kept_after_each(const Graph& graph,
                                          const Anatomy& anatomy,
                                          const LoadOf& load_of) {
  const Ledger ledger(anatomy);
  Dropping dropping(anatomy);
  std::map<Node, std::int64_t> freed_at;
  std::int64_t now = 0;
  const auto bytes = [&](const Bytes& of, const Node& node) {
    return of.of(share_of(anatomy, node, load_of(node)));
  };
  const auto keep = [&](const Bytes& of, const Node& node, const Node& until) {
    const std::int64_t count = bytes(of, node);
    if (count == 0) return;
    now += count;
    freed_at[until] += count;
  };
  std::vector<std::int64_t> kept;
  const auto drop = [&](const std::vector<Node>& over) {
    for (const Node& made : over) now -= bytes(piece_of(anatomy, made).absent_bytes(), made);
  };
  for (const Entry& entry : graph.entries) {
    const Node& node = entry.node;
    drop(dropping.before(node));
    if (node.direction == Direction::F) {
      keep(ledger.own_of(node), node, ledger.end_of(node));
      keep(ledger.output_of(node), node, ledger.reader_of(node));
    } else if (node.direction == Direction::R || node.direction == Direction::I) {
      now += bytes(piece_of(anatomy, node).absent_bytes(), node);
    } else if (const auto freed = freed_at.find(node); freed != freed_at.end()) {
      now -= freed->second;
      freed_at.erase(freed);
    }
    drop(dropping.after(node));
    kept.push_back(now);
  }
  return kept;
}

std::int64_t activation_mark(const Graph& graph, const Anatomy& anatomy, const Load& load) {
  const std::vector<std::int64_t> kept =
      kept_after_each(graph, anatomy, [&](const Node&) { return load; });
  return kept.empty() ? 0 : std::ranges::max(kept);
}

}  // namespace weft::schedule
