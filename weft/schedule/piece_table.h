// Rows of pieces and parts (block/piece_table.h), looked up by node.
#pragma once

#include "weft/block/piece_table.h"
#include "weft/schedule/node.h"

namespace weft::schedule {

using block::Cover;
using block::Leg;
using block::Members;
using block::PartRow;
using block::PieceRow;
using block::Place;
using block::Remade;
using block::row_of;
using block::Scope;
using block::Weights;

// Members of a node: those of its part, unless Rank, else those of its piece.
constexpr Members members_of(const Node& node) {
  const Members of_part = row_of(node.part).members;
  return of_part == Members::Rank ? row_of(node.piece).members : of_part;
}

// True for nodes between pipeline stages.
inline bool is_exchange(const Node& node) { return row_of(node.piece).scope == Scope::Exchange; }

}  // namespace weft::schedule
