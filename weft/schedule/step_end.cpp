#include "weft/schedule/step_end.h"

#include "weft/base/check.h"

namespace weft::schedule {
namespace {

// The ends of the tables' weight gradients that this rank has.
void table_gradients(const Anatomy& anatomy, int last, std::vector<Node>& needs) {
  if (anatomy.chunks.front().has_embed) {
    needs.push_back(node_of(anatomy.embed, kNone, Direction::W, last));
  }
  if (anatomy.chunks.back().has_head) {
    needs.push_back(node_of(anatomy.head, kNone, Direction::W, last));
  }
}

void layer_weight_gradients(const Anatomy& anatomy,
                            Weights weights,
                            int last,
                            std::vector<Node>& needs) {
  for (const Chunk& chunk : anatomy.chunks) {
    for (int layer = chunk.first_layer; layer < chunk.end_layer(); ++layer) {
      for (const PieceAnatomy& piece : anatomy.layers[static_cast<std::size_t>(layer)]) {
        if (!piece.has_weight_gradient() || row_of(piece.piece).weights != weights) continue;
        const Node place{.layer = layer, .direction = Direction::W, .micro_batch = last};
        needs.push_back(nodes_of(anatomy, piece, place).back());
      }
    }
  }
}

void last_weight_gradients(const Anatomy& anatomy,
                           Gradients gradients,
                           int last,
                           std::vector<Node>& needs) {
  switch (gradients) {
    case Gradients::Tables:
      return table_gradients(anatomy, last, needs);
    case Gradients::Dense:
      layer_weight_gradients(anatomy, Weights::Dense, last, needs);
      return table_gradients(anatomy, last, needs);
    case Gradients::Expert:
      return layer_weight_gradients(anatomy, Weights::Expert, last, needs);
  }
  UNREACHABLE("gradients {}", static_cast<int>(gradients));
}

// A forward-only step ends when every micro-batch has left the rank.
std::vector<Node> forward_ends(const Anatomy& anatomy, int micro_batches) {
  std::vector<Node> ends;
  const Chunk& last = anatomy.chunks.back();
  for (int i = 0; i < micro_batches; ++i) {
    ends.push_back(last.has_head ? node_of(anatomy.head, kNone, Direction::F, i)
                                 : Node{.chunk = last.stage,
                                        .direction = Direction::F,
                                        .micro_batch = i,
                                        .piece = anatomy.send.piece});
  }
  return ends;
}

}  // namespace

// Gradients are summed over the ranks that have them, the norm over all; then the host judges it.
std::vector<StepEndAnatomy> training_end(Tie tie, const ReductionScope& sums) {
  std::vector<StepEndAnatomy> end;
  const PieceName dense_sum{Piece::Reduce, Part::Dense}, expert_sum{Piece::Reduce, Part::Expert};
  std::vector<PieceName> tied;
  if (tie != Tie::None) {
    tied.emplace_back(Piece::Tie);
    end.push_back({.piece = Piece::Tie,
                   .lane = tie == Tie::BetweenStages ? Lane::Dp : Lane::Compute,
                   .after = {},
                   .gradients = {Gradients::Tables}});
  }
  StepEndAnatomy norm{.piece = Piece::Norm, .lane = Lane::Compute, .after = {}};
  StepEndAnatomy copied{.piece = Piece::Reduce,
                        .part = Part::Copied,
                        .lane = Lane::Tp,
                        .after = {}};
  const auto add_sum = [&](Sums over,
                           const PieceName& name,
                           Gradients of,
                           const std::vector<PieceName>& after,
                           StepEndAnatomy& next) {
    if (over == Sums::None) {
      next.gradients.push_back(of);
      next.after.insert(next.after.end(), after.begin(), after.end());
      return;
    }
    next.after.push_back(name);
    end.push_back({.piece = name.piece,
                   .part = name.part,
                   .lane = Lane::Dp,
                   .after = after,
                   .gradients = {of}});
  };
  add_sum(sums.expert, expert_sum, Gradients::Expert, {}, norm);
  const bool has_copies = sums.copied == Sums::OverRanks;
  add_sum(sums.dense, dense_sum, Gradients::Dense, tied, has_copies ? copied : norm);
  if (has_copies) {
    norm.after.emplace_back(copied.piece, copied.part);
    end.push_back(std::move(copied));
  }
  end.push_back(std::move(norm));
  const bool has_totals = sums.totals == Sums::OverRanks;
  if (has_totals) end.push_back({.piece = Piece::Totals, .lane = Lane::Dp, .after = {Piece::Norm}});
  end.push_back({.piece = Piece::Clip,
                 .lane = Lane::Host,
                 .after = {has_totals ? Piece::Totals : Piece::Norm}});
  end.push_back({.piece = Piece::Optimizer, .lane = Lane::Compute, .after = {Piece::Clip}});
  return end;
}

std::vector<StepEndAnatomy> forward_end(const ReductionScope& sums) {
  if (sums.totals == Sums::None) return {};
  return {{.piece = Piece::Totals, .lane = Lane::Dp, .after = {}}};
}

const StepEndAnatomy& step_end_of(const Anatomy& anatomy, const Node& node) {
  for (const std::vector<StepEndAnatomy>* ends : {&anatomy.step_end, &anatomy.forward_end}) {
    for (const StepEndAnatomy& end : *ends) {
      if (end.is({node.piece, node.part})) return end;
    }
  }
  UNREACHABLE("no step of this rank ends with {}", print(node));
}

std::vector<Node> step_end_needs(const Anatomy& anatomy,
                                 const Node& node,
                                 int micro_batches,
                                 StepKind kind) {
  if (kind == StepKind::ForwardOnly) return forward_ends(anatomy, micro_batches);
  const StepEndAnatomy& end = step_end_of(anatomy, node);
  std::vector<Node> needs;
  for (const PieceName& before : end.after) {
    needs.push_back({.piece = before.piece, .part = before.part});
  }
  for (const Gradients gradients : end.gradients) {
    last_weight_gradients(anatomy, gradients, micro_batches - 1, needs);
  }
  return needs;
}

}  // namespace weft::schedule
