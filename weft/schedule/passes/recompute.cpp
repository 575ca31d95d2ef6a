#include "weft/schedule/passes/recompute.h"

#include <algorithm>
#include <unordered_set>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/schedule/passes/rewrite.h"

namespace weft::schedule {
namespace {

// Writes entries, each behind the recomputations it needs.
class Inserter {
 public:
  Inserter(const Anatomy& anatomy, int micro_batches)
      : anatomy_(anatomy), micro_batches_(micro_batches) {}

  void add(NamedEntry entry) {
    for (const Node& need : required(anatomy_, entry.node, micro_batches_, StepKind::Training)) {
      const bool is_new = need.direction == Direction::R && done_.insert(need).second;
      if (is_new) add({.node = need, .waits = {}});
    }
    entries_.push_back(std::move(entry));
  }

  Graph write() const { return schedule::write(entries_, anatomy_, micro_batches_); }

 private:
  const Anatomy& anatomy_;
  const int micro_batches_;
  NamedEntries entries_;
  std::unordered_set<Node, NodeHash> done_;
};

std::string name_of(const PieceName& name) {
  return print({.piece = name.piece, .part = name.part});
}

}  // namespace

Anatomy with_recomputation(Anatomy anatomy, std::span<const PieceName> names) {
  for (const PieceName& name : names) {
    bool remakes = false;
    for (std::vector<PieceAnatomy>* list : all_pieces(anatomy)) {
      for (PieceAnatomy& piece : *list) {
        const bool is_named =
            piece.piece == name.piece && (name.part == Part::None || name.part == piece.part);
        if (!is_named || piece.remade == Bytes{}) continue;
        piece.is_recomputed = remakes = true;
      }
    }
    if (!remakes) {
      throw base::ConfigError(
          base::text("{} cannot be recomputed: no layer has it, or it keeps nothing that can be "
                     "made again",
                     name_of(name)));
    }
  }
  return anatomy;
}

std::vector<PieceName> always_recomputed(Anatomy& anatomy) {
  std::vector<PieceName> names;
  for (const std::vector<PieceAnatomy>* list : all_pieces(anatomy)) {
    for (const PieceAnatomy& piece : *list) {
      const PieceName name{piece.piece, piece.part};
      const bool is_new = std::ranges::find(names, name) == names.end();
      const bool is_dropped = row_of(piece.part).is_always_recomputed && piece.remade != Bytes{};
      if (is_dropped && is_new) names.push_back(name);
    }
  }
  return names;
}

Graph recompute(const Graph& graph, const Anatomy& recomputing, int micro_batches) {
  Inserter inserter(recomputing, micro_batches);
  for (NamedEntry& entry : named_entries(graph)) inserter.add(std::move(entry));
  return inserter.write();
}

}  // namespace weft::schedule
