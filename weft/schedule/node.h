// A node: one piece of one layer of one micro-batch in one direction, and its one text.
//
//   node  = [place "."] piece ["." part] ["#" slice]
//   place = [layer | "c" chunk] [direction [micro-batch]]
//
// `3F7.dispatch` is the token dispatch of layer 3, micro-batch 7, forward; `F7.embed` has no layer;
// `c1F3.send` sends the output of pipeline chunk 1; `reduce.dense#2` reduces bucket 2; `optimizer`
// has no place at all. Directions: F forward, D input gradient, W weight gradient, R recomputation.
// The text is the node's span in the trace, its cost row and its place in an error message.
#pragma once

#include <compare>
#include <string>
#include <string_view>

namespace weft::schedule {

enum class Direction { None, F, D, W, R };

enum class Piece {
  Embed,
  Attention,
  Route,
  Counts,
  Sizes,
  Permute,
  Dispatch,
  Experts,
  Combine,
  Merge,
  Shared,
  Mlp,
  Head,
  Send,
  Receive,
  Reduce,
  Gather,
  Tie,
  Norm,
  Totals,
  Clip,
  Optimizer,
};
inline constexpr int kPieces = static_cast<int>(Piece::Optimizer) + 1;

enum class Part { None, Qkv, Core, Proj, Fc1, Act, Fc2, Dense, Expert };
inline constexpr int kParts = static_cast<int>(Part::Expert) + 1;

std::string_view word(Direction direction);
std::string_view word(Piece piece);
std::string_view word(Part part);

inline constexpr int kNone = -1;

struct Node {
  int layer = kNone;  // global index; excludes chunk
  int chunk = kNone;
  Direction direction = Direction::None;
  int micro_batch = kNone;  // only with a direction
  Piece piece = Piece::Optimizer;
  Part part = Part::None;
  int slice = kNone;

  auto operator<=>(const Node&) const = default;
};

std::string print(const Node& node);
// The name of an operation between ranks, the same on all of them: a receive has that of the send
// it takes from, on the chunk before (F) or after (D); any other node its own.
Node operation_of(const Node& node);
// ConfigError naming the text and the place where it stops being a node.
Node parse_node(std::string_view text);

}  // namespace weft::schedule
