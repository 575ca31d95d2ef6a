#include "weft/train/program/program_pieces.h"

#include <algorithm>

#include "weft/base/check.h"

namespace weft::train {
namespace {

using schedule::Direction;
using schedule::Node;
using schedule::Part;
using schedule::Piece;

}  // namespace

Program::Bodies Program::bodies_of(const Node& node) {
  switch (node.piece) {
    case Piece::Embed:
      return Pieces::embed(node.part);
    case Piece::Attention:
      return Pieces::attention(node.part);
    case Piece::Route:
      return Pieces::route(node.part);
    case Piece::Counts:
      return Pieces::counts();
    case Piece::Balance:
      return Pieces::balance();
    case Piece::Tally:
      return Pieces::tally();
    case Piece::Sizes:
      return Pieces::sizes();
    case Piece::Permute:
      return Pieces::permute();
    case Piece::Dispatch:
      return Pieces::dispatch();
    case Piece::Experts:
      return Pieces::experts(node.part);
    case Piece::Combine:
      return Pieces::combine();
    case Piece::Merge:
      return Pieces::merge();
    case Piece::Shared:
      return Pieces::shared(node.part);
    case Piece::Mlp:
      return Pieces::mlp(node.part);
    case Piece::Head:
      return Pieces::head(node.part);
    case Piece::Send:
    case Piece::Receive:
      return Pieces::exchange();
    case Piece::Narrow:
      return Pieces::narrow();
    case Piece::Reduce:
      return Pieces::reduce();
    case Piece::Widen:
      return Pieces::widen();
    case Piece::Tie:
      return Pieces::tie();
    case Piece::Norm:
      return Pieces::norm();
    case Piece::Totals:
      return Pieces::totals();
    case Piece::Clip:
      return Pieces::clip();
    case Piece::Optimizer:
      return Pieces::optimizer();
    case Piece::Snapshot:
      return Pieces::snapshot();
    case Piece::Gather:
      return Pieces::gather();
    case Piece::Download:
      return Pieces::download();
    case Piece::Update:
      return Pieces::update();
    case Piece::Upload:
      return Pieces::upload();
  }
  UNREACHABLE("no body for {}", schedule::print(node));
}

Program::Body Program::body_of(const Bodies& bodies, Direction direction) {
  switch (direction) {
    case Direction::F:
      return bodies.forward;
    case Direction::R:
      return bodies.recompute;
    case Direction::D:
      return bodies.input_gradient;
    case Direction::W:
      return bodies.weight_gradient;
    case Direction::O:
    case Direction::I:
    case Direction::None:
      break;
  }
  UNREACHABLE("no body of direction '{}'", schedule::word(direction));
}

// Parts of a single-node piece in order; each runs if it has the body.
std::vector<Node> Program::parts_of(const Node& node) const {
  if (node.part != Part::None) return {node};
  // A step without its row budget has pieces that the anatomy lacks; these have no parts.
  const std::vector<schedule::PieceAnatomy>& beside = schedule::pieces_beside(anatomy_, node);
  const auto piece = std::ranges::find(beside, node.piece, &schedule::PieceAnatomy::piece);
  if (piece == beside.end() || piece->parts.empty()) return {node};
  std::vector<Node> nodes;
  for (const schedule::PieceAnatomy& part : piece->parts) {
    Node one = node;
    one.part = part.part;
    const Bodies bodies = bodies_of(one);
    if (node.direction == Direction::R && bodies.makes_only_layer_output) continue;
    if (body_of(bodies, node.direction) != nullptr) nodes.push_back(one);
  }
  const bool back = node.direction == Direction::D || node.direction == Direction::W;
  if (back) std::ranges::reverse(nodes);
  return nodes;
}

}  // namespace weft::train
