// Node: one piece of one layer of one micro-batch in one direction, with a unique text.
//
//   node  = [place "."] piece ["." part] ["#" slice]
//   place = [layer | "c" chunk] [direction [micro-batch]]
//
// `3F7.dispatch` is the token dispatch of layer 3, micro-batch 7, forward; `F7.embed` has no layer;
// `c1F3.send` sends the output of pipeline chunk 1; `reduce.dense#2` reduces bucket 2; `optimizer`
// has no place. Directions: F forward, D input gradient, W weight gradient, R recomputation, O
// offload to host memory, I return from it. The text names the node's span in a trace, its cost
// row, and the node in errors.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "weft/block/piece.h"

namespace weft::schedule {

enum class Direction { None, F, D, W, R, O, I };
inline constexpr int kDirections = static_cast<int>(Direction::I) + 1;

using block::kParts;
using block::kPieces;
using block::Part;
using block::Piece;
using block::word;

std::string_view word(Direction direction);

inline constexpr int kNone = -1;

struct Node {
  int layer = kNone;  // index in the whole model; excludes chunk
  int chunk = kNone;
  Direction direction = Direction::None;
  int micro_batch = kNone;  // requires a direction
  Piece piece = Piece::Optimizer;
  Part part = Part::None;
  int slice = kNone;

  auto operator<=>(const Node&) const = default;
};

// For hash tables: planning looks up several nodes for each one it writes.
struct NodeHash {
  std::size_t operator()(const Node& node) const {
    const auto mix = [](std::uint64_t seed, std::int64_t value) {
      return (seed ^ static_cast<std::uint64_t>(value)) * 0x9e3779b97f4a7c15u;
    };
    std::uint64_t hash = mix(static_cast<std::uint64_t>(node.piece), node.micro_batch);
    hash = mix(hash, node.layer) ^ (hash >> 29);
    hash = mix(hash,
               (node.chunk + 1) * 256 + static_cast<int>(node.direction) * 32 +
                   static_cast<int>(node.part));
    return static_cast<std::size_t>(mix(hash ^ (hash >> 31), node.slice) >> 8);
  }
};

std::string print(const Node& node);
// Throws ConfigError with the text and the position of the error.
Node parse_node(std::string_view text);

}  // namespace weft::schedule
