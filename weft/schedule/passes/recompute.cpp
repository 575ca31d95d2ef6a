#include "weft/schedule/passes/recompute.h"

#include <algorithm>
#include <unordered_set>

#include "weft/base/casts.h"
#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/schedule/dependencies.h"
#include "weft/schedule/passes/rewrite.h"

namespace weft::schedule {
namespace {

// Writes entries, each after the recomputations it needs.
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

PieceAnatomy* find(std::vector<PieceAnatomy>& pieces, const PieceName& name) {
  const auto found =
      std::ranges::find_if(pieces, [&](const PieceAnatomy& piece) { return piece.is(name); });
  return found == pieces.end() ? nullptr : &*found;
}

// Part of attention that feeds the exchange of heads; nullptr: no such exchange.
PieceAnatomy* maker_of_exchanged_heads(std::vector<PieceAnatomy>& pieces) {
  if (find(pieces, {Piece::Attention, Part::Heads}) == nullptr) return nullptr;
  for (const Part part : {Part::Expand, Part::Turn}) {
    if (PieceAnatomy* found = find(pieces, {Piece::Attention, part})) return found;
  }
  return find(pieces, {Piece::Attention, Part::Qkv});
}

// True for pieces without kept bytes that must run again to feed recomputed ones. These are:
// transfers of expert rows; queries and keys before an exchange of heads; attention's projection if
// its sum is recomputed.
bool must_run_again(std::vector<PieceAnatomy>& pieces, const PieceAnatomy& piece) {
  if (piece.piece == Piece::Permute || piece.piece == Piece::Dispatch) return true;
  if (piece.piece != Piece::Attention) return false;
  if (piece.part == Part::Qkv) return maker_of_exchanged_heads(pieces) == &piece;
  const PieceAnatomy* sum = find(pieces, {Piece::Attention, Part::Add});
  const bool is_in_front_of_sum = piece.part == Part::Proj || piece.part == Part::Scatter;
  return is_in_front_of_sum && sum != nullptr && sum->remade != Bytes{};
}

// If context-parallel ranks exchange heads, these are resent together with the part that feeds
// them. Attention's output is resent if both attention and its reader are recomputed.
void follow_heads(std::vector<PieceAnatomy>& pieces) {
  const PieceAnatomy* maker = maker_of_exchanged_heads(pieces);
  if (maker == nullptr) return;
  const auto part = [&](Part name) -> PieceAnatomy& {
    return *find(pieces, {Piece::Attention, name});
  };
  for (const Part in : {Part::Heads, Part::Arrange}) {
    part(in).is_recomputed = maker->is_recomputed;
  }
  const bool comes_out_again = part(Part::Core).is_recomputed && part(Part::Proj).is_recomputed;
  for (const Part out : {Part::Tokens, Part::Proj}) part(out).is_recomputed = comes_out_again;
}

// True for pieces between a layer's common recomputation and its output.
bool is_behind_common_recomputation(const PieceAnatomy& piece) {
  if (piece.piece == Piece::Combine || piece.piece == Piece::Merge) return true;
  const bool is_of_products =
      piece.piece == Piece::Experts || piece.piece == Piece::Shared || piece.piece == Piece::Mlp;
  return is_of_products && (piece.part == Part::Fc2 || piece.part == Part::Scatter ||
                            piece.part == Part::Gate || piece.part == Part::Add);
}

// True if a list of pieces belongs to one of the first layers of a chunk.
bool is_in_first_layers(const Anatomy& anatomy, const std::vector<PieceAnatomy>& list, int layers) {
  return std::ranges::any_of(anatomy.chunks, [&](const Chunk& chunk) {
    const int end = chunk.first_layer + std::min(layers, chunk.layers);
    for (int layer = chunk.first_layer; layer < end; ++layer) {
      if (&anatomy.layers[base::at(layer)] == &list) return true;
    }
    return false;
  });
}

// Rows that experts read again must be resent.
void check_rows(const std::vector<PieceAnatomy>& pieces) {
  const auto runs_again = [&](Piece piece, Part part) {
    return std::ranges::any_of(pieces, [&](const PieceAnatomy& each) {
      return each.is({piece, part}) && each.is_recomputed;
    });
  };
  const bool reads_restored =
      runs_again(Piece::Experts, Part::None) || runs_again(Piece::Experts, Part::Arrange);
  if (!reads_restored || runs_again(Piece::Dispatch, Part::None)) return;
  throw base::ConfigError(
      "experts cannot be recomputed without permute and dispatch, which bring "
      "their rows");
}

}  // namespace

Anatomy with_recomputation(Anatomy anatomy,
                           std::span<const PieceName> names,
                           std::optional<int> layers) {
  for (const PieceName& name : names) {
    bool runs_again = false;
    for (std::vector<PieceAnatomy>* list : all_pieces(anatomy)) {
      for (PieceAnatomy& piece : *list) {
        const bool is_named =
            piece.piece == name.piece && (name.part == Part::None || name.part == piece.part);
        if (!is_named || (piece.remade == Bytes{} && !must_run_again(*list, piece))) continue;
        runs_again = true;
        if (!layers || is_in_first_layers(anatomy, *list, *layers)) piece.is_recomputed = true;
      }
    }
    if (!runs_again) {
      throw base::ConfigError(
          base::text("{} cannot be recomputed: no layer has it, or it keeps nothing that can be "
                     "made again",
                     name_of(name)));
    }
  }
  for (std::vector<PieceAnatomy>* list : all_pieces(anatomy)) {
    follow_heads(*list);
    check_rows(*list);
  }
  return anatomy;
}

Anatomy with_grouped_layers(Anatomy anatomy, int group) {
  for (const Chunk& chunk : anatomy.chunks) {
    for (int layer = chunk.first_layer; layer + 1 < chunk.end_layer(); ++layer) {
      if ((layer - chunk.first_layer + 1) % group == 0) continue;
      for (PieceAnatomy& piece : anatomy.layers[base::at(layer)]) {
        if (is_behind_common_recomputation(piece)) piece.is_recomputed = true;
      }
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
