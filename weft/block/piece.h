// Names of a step's pieces, and of the parts of a piece.
#pragma once

#include <string_view>

namespace weft::block {

enum class Piece {
  Embed,
  Attention,
  Route,
  Counts,
  Balance,
  Tally,
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
  Narrow,
  Reduce,
  Widen,
  Gather,
  Tie,
  Norm,
  Totals,
  Clip,
  Optimizer,
  Snapshot,
  Download,
  Update,
  Upload,
};
inline constexpr int kPieces = static_cast<int>(Piece::Upload) + 1;

enum class Part {
  None,
  Norm,
  Gather,
  Qkv,
  Squares,
  Turn,
  Expand,
  Heads,
  Arrange,
  Ring,
  Keys,
  Core,
  Tokens,
  Proj,
  Fc1,
  Act,
  Fc2,
  Scatter,
  Lookup,
  Logits,
  Sums,
  Loss,
  Gate,
  Choose,
  Add,
  Dense,
  Expert,
  Copied,
};
inline constexpr int kParts = static_cast<int>(Part::Copied) + 1;

std::string_view word(Piece piece);
std::string_view word(Part part);

}  // namespace weft::block
