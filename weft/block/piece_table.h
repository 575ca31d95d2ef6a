// WHAT IS A PIECE? Properties of a piece for passes, bytes and costs that do not depend on the
// model: one row per piece, and one row per part. The anatomy has the properties that depend on the
// model (lanes, dependencies, bytes). A piece or a part without a row does not compile.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "weft/block/piece.h"

namespace weft::block {

// Unit that a piece belongs to.
enum class Scope {
  Layer,     // layer of a micro-batch
  ChunkEnd,  // micro-batch, at one end of the model: embedding and head
  Exchange,  // chunk and micro-batch: between pipeline stages
  Step,      // step: before or after its micro-batches
};

// Ranks that take part in a piece on a lane between ranks.
enum class Members {
  Rank,       // this rank only
  Neighbour,  // sender and receiver of a pipeline
  Experts,    // ranks that hold the experts of a layer
  Replicas,   // ranks with equal dense layers and other tokens
  Sharers,    // among Replicas, ranks with other tokens of the same micro-batch
  Gradients,  // ranks that hold copies of the part's gradients
  Tables,     // ends of a pipeline that share a table
  Context,    // context-parallel group: ranks that share each sequence
  Tensor,     // tensor-parallel group: ranks that share each product of a layer
  World,
};

// Place of a piece in a layer relative to communication: before it, during it, between, after.
enum class Place { None, Before, Dispatch, Between, Combine, After };

// Stages of a slice's way: to its experts, with them, back, and into place.
enum class Leg { None, There, Experts, Back, Home };

// Communication that a split weight gradient covers (comm_overlap.delay_wgrad_compute).
enum class Cover {
  Unsplit,      // stays with its input gradient
  Nothing,      // may run later, and is not moved
  WayBack,      // return of the last slice's rows
  LayerBefore,  // the previous layer's exchange, or the send: started by the input gradient
};

// Buffers of a piece's weight gradients.
enum class Weights { None, Dense, Expert };

struct PieceRow {
  Piece piece = Piece::Optimizer;
  std::string_view word = {};
  Scope scope = Scope::Layer;
  Members members = Members::Rank;
  Place place = Place::None;
  Leg forward_leg = Leg::None, backward_leg = Leg::None;
  bool is_sliced = false;  // one node per slice of tokens
  bool has_input_gradient = true;
  Weights weights = Weights::None;
  Cover cover = Cover::Unsplit;
  bool is_always_split = false;  // its parts are always nodes
  // Part whose output later pieces also read: if recomputed, it is dropped after them, and made
  // again before their gradients.
  std::optional<Part> shown = std::nullopt;
};

// Later gradients that read the recomputed output of a part.
enum class Remade { ForAll, ForWeights };

struct PartRow {
  Part part = Part::None;
  std::string_view word = {};
  bool has_weights = true;          // if the piece has weights
  Members members = Members::Rank;  // other than Rank: members of the part, and its lane
  bool has_input_gradient = true;   // if the piece has one
  Remade remade = Remade::ForAll;
  // Its output is always dropped after the forward and made again.
  bool is_always_recomputed = false;
};

// In the order of the enumerators.
inline constexpr std::array<PieceRow, kPieces> kPieceTable{{
    {.piece = Piece::Embed,
     .word = "embed",
     .scope = Scope::ChunkEnd,
     .has_input_gradient = false,
     .weights = Weights::Dense},
    {.piece = Piece::Attention,
     .word = "attention",
     .place = Place::Before,
     .weights = Weights::Dense,
     .cover = Cover::LayerBefore,
     .shown = Part::Add},
    {.piece = Piece::Route,
     .word = "route",
     .place = Place::Before,
     .weights = Weights::Dense,
     .shown = Part::Norm},
    {.piece = Piece::Counts,
     .word = "counts",
     .members = Members::Experts,
     .place = Place::Before,
     .has_input_gradient = false},
    {.piece = Piece::Balance,
     .word = "balance",
     .members = Members::Replicas,
     .place = Place::Before,
     .has_input_gradient = false},
    {.piece = Piece::Tally,
     .word = "tally",
     .members = Members::Sharers,
     .place = Place::Before,
     .has_input_gradient = false},
    {.piece = Piece::Sizes,
     .word = "sizes",
     .place = Place::Dispatch,
     .forward_leg = Leg::There,
     .has_input_gradient = false},
    {.piece = Piece::Permute,
     .word = "permute",
     .place = Place::Before,
     .forward_leg = Leg::There,
     .backward_leg = Leg::Home,
     .is_sliced = true},
    {.piece = Piece::Dispatch,
     .word = "dispatch",
     .members = Members::Experts,
     .place = Place::Dispatch,
     .forward_leg = Leg::There,
     .backward_leg = Leg::Back,
     .is_sliced = true},
    {.piece = Piece::Experts,
     .word = "experts",
     .place = Place::Between,
     .forward_leg = Leg::Experts,
     .backward_leg = Leg::Experts,
     .is_sliced = true,
     .weights = Weights::Expert,
     .cover = Cover::WayBack},
    {.piece = Piece::Combine,
     .word = "combine",
     .members = Members::Experts,
     .place = Place::Combine,
     .forward_leg = Leg::Back,
     .backward_leg = Leg::There,
     .is_sliced = true},
    {.piece = Piece::Merge, .word = "merge", .place = Place::After},
    {.piece = Piece::Shared,
     .word = "shared",
     .place = Place::Before,
     .weights = Weights::Dense,
     .cover = Cover::LayerBefore,
     .is_always_split = true},
    {.piece = Piece::Mlp,
     .word = "mlp",
     .place = Place::Between,
     .weights = Weights::Dense,
     .cover = Cover::Nothing},
    {.piece = Piece::Head, .word = "head", .scope = Scope::ChunkEnd, .weights = Weights::Dense},
    {.piece = Piece::Send, .word = "send", .scope = Scope::Exchange, .members = Members::Neighbour},
    {.piece = Piece::Receive,
     .word = "receive",
     .scope = Scope::Exchange,
     .members = Members::Neighbour},
    {.piece = Piece::Narrow, .word = "narrow", .scope = Scope::Step},
    {.piece = Piece::Reduce, .word = "reduce", .scope = Scope::Step, .members = Members::Gradients},
    {.piece = Piece::Widen, .word = "widen", .scope = Scope::Step},
    {.piece = Piece::Gather, .word = "gather", .scope = Scope::Step, .members = Members::Gradients},
    {.piece = Piece::Tie, .word = "tie", .scope = Scope::Step, .members = Members::Tables},
    {.piece = Piece::Norm, .word = "norm", .scope = Scope::Step},
    {.piece = Piece::Totals, .word = "totals", .scope = Scope::Step, .members = Members::World},
    {.piece = Piece::Clip, .word = "clip", .scope = Scope::Step},
    {.piece = Piece::Optimizer, .word = "optimizer", .scope = Scope::Step},
    {.piece = Piece::Snapshot, .word = "snapshot", .scope = Scope::Step},
    {.piece = Piece::Download, .word = "download", .scope = Scope::Step},
    {.piece = Piece::Update, .word = "update", .scope = Scope::Step},
    {.piece = Piece::Upload, .word = "upload", .scope = Scope::Step},
}};

inline constexpr std::array<PartRow, kParts> kPartTable{{
    {.part = Part::None, .word = ""},
    {.part = Part::Norm, .word = "norm"},
    {.part = Part::Gather,
     .word = "gather",
     .has_weights = false,
     .members = Members::Tensor,
     .remade = Remade::ForWeights,
     .is_always_recomputed = true},
    {.part = Part::Qkv, .word = "qkv"},
    {.part = Part::Squares, .word = "squares", .has_weights = false, .members = Members::Tensor},
    {.part = Part::Turn, .word = "turn", .has_weights = false},
    {.part = Part::Expand, .word = "expand"},
    {.part = Part::Heads, .word = "heads", .has_weights = false, .members = Members::Context},
    {.part = Part::Arrange, .word = "arrange", .has_weights = false},
    {.part = Part::Ring,
     .word = "ring",
     .has_weights = false,
     .members = Members::Context,
     .is_always_recomputed = true},
    {.part = Part::Keys,
     .word = "keys",
     .has_weights = false,
     .members = Members::Context,
     .is_always_recomputed = true},
    {.part = Part::Core, .word = "core", .has_weights = false},
    {.part = Part::Tokens, .word = "tokens", .has_weights = false, .members = Members::Context},
    {.part = Part::Proj, .word = "proj"},
    {.part = Part::Fc1, .word = "fc1"},
    {.part = Part::Act, .word = "act", .has_weights = false},
    {.part = Part::Fc2, .word = "fc2"},
    {.part = Part::Scatter, .word = "scatter", .has_weights = false, .members = Members::Tensor},
    {.part = Part::Lookup, .word = "lookup"},
    {.part = Part::Logits, .word = "logits"},
    {.part = Part::Sums,
     .word = "sums",
     .has_weights = false,
     .members = Members::Tensor,
     .has_input_gradient = false},
    {.part = Part::Loss, .word = "loss", .has_weights = false},
    {.part = Part::Gate, .word = "gate"},
    {.part = Part::Choose, .word = "choose"},
    {.part = Part::Add, .word = "add", .has_weights = false},
    {.part = Part::Dense, .word = "dense"},
    {.part = Part::Expert, .word = "expert"},
    {.part = Part::Copied, .word = "copied", .members = Members::Tensor},
}};

// A short table ends in default rows; a misplaced row names another piece.
consteval bool every_piece_has_its_row() {
  for (int i = 0; i < kPieces; ++i) {
    const PieceRow& row = kPieceTable[static_cast<std::size_t>(i)];
    const bool stands_in_a_layer = row.scope == Scope::Layer;
    if (row.piece != static_cast<Piece>(i) || row.word.empty()) return false;
    if (stands_in_a_layer != (row.place != Place::None)) return false;
  }
  for (int i = 1; i < kParts; ++i) {
    const PartRow& row = kPartTable[static_cast<std::size_t>(i)];
    if (row.part != static_cast<Part>(i) || row.word.empty()) return false;
  }
  return true;
}
static_assert(every_piece_has_its_row(), "a piece or a part has no row, or stands out of order");

constexpr const PieceRow& row_of(Piece piece) {
  return kPieceTable[static_cast<std::size_t>(piece)];
}
constexpr const PartRow& row_of(Part part) { return kPartTable[static_cast<std::size_t>(part)]; }

}  // namespace weft::block
