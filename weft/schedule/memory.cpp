#include "weft/schedule/memory.h"

#include <algorithm>
#include <map>

#include "weft/base/casts.h"

namespace weft::schedule {
namespace {

using base::at;

// What a forward node keeps: bytes of its own, and bytes of its output.
struct Kept {
  Bytes own, output;
};

class Ledger {
 public:
  explicit Ledger(const Anatomy& anatomy) : anatomy_(anatomy) {}

  Kept kept_by(const Node& node) const {
    switch (node.piece) {
      case Piece::Embed:
        return {.own = {}, .output = anatomy_.embed.kept};
      case Piece::Receive:
        return {.own = {}, .output = passes_through(node) ? Bytes{} : anatomy_.receive.kept};
      case Piece::Head:
        return {.own = anatomy_.head.kept, .output = {}};
      case Piece::Send:
        return {};
      default:
        break;
    }
    const PieceAnatomy& piece = piece_of(anatomy_, node);
    if (&piece != &anatomy_.layers[at(node.layer)].back()) return {.own = piece.kept, .output = {}};
    const Chunk& chunk = chunk_of_layer(anatomy_, node.layer);
    const bool sent = node.layer + 1 == chunk.end_layer() && chunk.sends();
    const std::int64_t stream = sent ? 0 : anatomy_.receive.kept.per_token;
    Bytes own = piece.kept;
    own.per_token -= stream;
    return {.own = own, .output = {.per_token = stream}};
  }

  // The last backward node of a piece.
  Node end_of(const Node& forward) const {
    Node end = forward;
    const bool has_weight =
        forward.layer == kNone || piece_of(anatomy_, forward).has_weight_gradient;
    end.direction = has_weight ? Direction::W : Direction::D;
    return end;
  }

  // The node that is last to read a forward node's output.
  Node reader_of(const Node& forward) const {
    const Chunk& chunk = chunk_of(anatomy_, forward);
    const int next = forward.layer == kNone ? chunk.first_layer : forward.layer + 1;
    Node reader{.direction = Direction::W, .micro_batch = forward.micro_batch};
    if (next >= chunk.end_layer()) {
      reader.piece = Piece::Head;
    } else {
      reader.layer = next;
      reader.piece = anatomy_.layers[at(next)].front().piece;
    }
    return reader;
  }

 private:
  // A chunk of nothing sends what it received.
  bool passes_through(const Node& receive) const {
    const Chunk& chunk = chunk_of(anatomy_, receive);
    return chunk.layers == 0 && chunk.sends();
  }

  const Anatomy& anatomy_;
};

}  // namespace

std::int64_t activation_mark(const Graph& graph, const Anatomy& anatomy, const Load& load) {
  const Ledger ledger(anatomy);
  std::map<Node, std::int64_t> freed_at;
  std::int64_t now = 0, most = 0;
  const auto keep = [&](const Bytes& bytes, const Node& node, const Node& until) {
    const std::int64_t count = bytes.of(share_of(anatomy, node, load));
    if (count == 0) return;
    now += count;
    freed_at[until] += count;
  };
  for (const Entry& entry : graph.entries) {
    if (entry.node.direction == Direction::F) {
      const Kept kept = ledger.kept_by(entry.node);
      keep(kept.own, entry.node, ledger.end_of(entry.node));
      keep(kept.output, entry.node, ledger.reader_of(entry.node));
      most = std::max(most, now);
      continue;
    }
    const auto freed = freed_at.find(entry.node);
    if (freed == freed_at.end()) continue;
    now -= freed->second;
    freed_at.erase(freed);
  }
  return most;
}

}  // namespace weft::schedule
