// WHAT IS A PIECE? What passes, bytes and costs need to know about a piece whatever the model is:
// one row a piece, and one row a part. What depends on the model (lanes, dependencies, bytes) is in
// the anatomy. A piece or a part without a row does not compile.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "weft/schedule/node.h"

namespace weft::schedule {

// What a piece belongs to.
enum class Scope {
  Layer,     // a layer of a micro-batch
  ChunkEnd,  // a micro-batch, at one end of the model: embedding and head
  Exchange,  // a chunk and a micro-batch: between pipeline stages
  Step,      // the step: ahead of its micro-batches, or after them
};

// Who takes part in a piece, where it is on a lane between ranks.
enum class Members {
  Rank,       // nobody else
  Neighbour,  // a sender and a receiver of a pipeline
  Experts,    // the ranks that hold the experts of a layer
  Replicas,   // the ranks with the same dense layers and other tokens
  Sharers,    // of them, those with other tokens of the same micro-batch
  Gradients,  // the ranks that hold copies of the part's gradients
  Tables,     // the ends of a pipeline, which share a table
  Context,    // the context-parallel group: ranks that share each sequence
  Tensor,     // the tensor-parallel group: ranks that share each product of a layer
  World,
};

// Where in a layer a piece is, seen from the communication: before it, in it, between, after.
enum class Place { None, Before, Dispatch, Between, Combine, After };

// What a slice of tokens does, one after the other: it travels to its experts, is with them,
// travels back, and is put in its place.
enum class Leg { None, There, Experts, Back, Home };

// What a weight gradient covers where it is split from its input gradient
// (comm_overlap.delay_wgrad_compute).
enum class Cover {
  Unsplit,      // it stays with its input gradient
  Nothing,      // it may run later, and is not moved
  WayBack,      // the rows of the last slice on their way back
  LayerBefore,  // an exchange of the layer before, or the send: what the input gradient sets off
};

// Whose buffers a piece's weight gradients are in.
enum class Weights { None, Dense, Expert };

struct PieceRow {
  Piece piece = Piece::Optimizer;
  std::string_view word = {};
  Scope scope = Scope::Layer;
  Members members = Members::Rank;
  Place place = Place::None;
  Leg forward_leg = Leg::None, backward_leg = Leg::None;
  bool is_sliced = false;  // has a node for each slice of tokens
  bool has_input_gradient = true;
  Weights weights = Weights::None;
  Cover cover = Cover::Unsplit;
  bool is_always_split = false;  // its parts are nodes, asked for or not
  // The part whose output is also read by the pieces after it: what it made is dropped behind them,
  // and made again before their gradients, where it is recomputed.
  std::optional<Part> shown = std::nullopt;
};

// Which gradients of the parts after it read what a part remakes where it is recomputed.
enum class Remade { ForAll, ForWeights };

struct PartRow {
  Part part = Part::None;
  std::string_view word = {};
  bool has_weights = true;          // of a piece that has
  Members members = Members::Rank;  // others than the piece's: then it has the lane of these
  bool has_input_gradient = true;   // of a piece that has
  Remade remade = Remade::ForAll;
  // What it made is dropped after the forward and made again, asked for or not.
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

// A table too short ends in rows of their default; one out of order names another piece.
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

// Who takes part in a node: its part's members, where those are others than the piece's.
constexpr Members members_of(const Node& node) {
  const Members of_part = row_of(node.part).members;
  return of_part == Members::Rank ? row_of(node.piece).members : of_part;
}

// Between pipeline stages.
inline bool is_exchange(const Node& node) { return row_of(node.piece).scope == Scope::Exchange; }

}  // namespace weft::schedule
