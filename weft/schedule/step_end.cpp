#include "weft/schedule/step_end.h"

#include <algorithm>

#include "weft/base/check.h"

namespace weft::schedule {
namespace {

// Tables of embedding and head on this rank.
std::vector<PieceAt> tables_of(const Anatomy& anatomy) {
  std::vector<PieceAt> tables;
  if (anatomy.chunks.front().has_embed) tables.push_back({.piece = Piece::Embed});
  if (anatomy.chunks.back().has_head) tables.push_back({.piece = Piece::Head});
  return tables;
}

// Adds the ends of a piece's weight gradients, over all its parts.
void add_last_gradients(const Anatomy& anatomy,
                        const PieceAt& at,
                        int last,
                        std::vector<Node>& needs) {
  const Node place{.layer = at.layer, .direction = Direction::W, .micro_batch = last};
  const Node among{.layer = at.layer, .piece = at.piece};
  for (const PieceAnatomy& piece : pieces_beside(anatomy, among)) {
    if (piece.piece != at.piece || !piece.has_weight_gradient()) continue;
    needs.push_back(nodes_of(anatomy, piece, place).back());
  }
}

// A forward-only step ends when every micro-batch has left the rank.
std::vector<Node> forward_ends(const Anatomy& anatomy, int micro_batches) {
  std::vector<Node> ends;
  const Chunk& last = anatomy.chunks.back();
  for (int i = 0; i < micro_batches; ++i) {
    ends.push_back(last.has_head ? node_of(anatomy.head.back(), kNone, Direction::F, i)
                                 : Node{.chunk = last.stage,
                                        .direction = Direction::F,
                                        .micro_batch = i,
                                        .piece = anatomy.send.piece});
  }
  return ends;
}

constexpr Node kTie{.piece = Piece::Tie}, kNorm{.piece = Piece::Norm};
constexpr Node kTotals{.piece = Piece::Totals}, kClip{.piece = Piece::Clip};
constexpr Node kCopied{.piece = Piece::Reduce, .part = Part::Copied};
constexpr Node kOptimizer{.piece = Piece::Optimizer};

}  // namespace

// Gradients are summed over the ranks that have them, the norm over all ranks; then the host checks
// it. If ranks share buckets, each updates its own part, and all gather the result.
std::vector<StepNodeAnatomy> training_end(const Anatomy& anatomy, const ReductionScope& sums) {
  std::vector<StepNodeAnatomy> end;
  if (anatomy.tie != Tie::None) {
    end.push_back({.node = kTie,
                   .lane = anatomy.tie == Tie::BetweenStages ? Lane::Dp : Lane::Compute,
                   .gradients = tables_of(anatomy)});
  }
  StepNodeAnatomy norm{.node = kNorm};
  const bool has_copies = sums.copied == Sums::OverRanks;
  StepNodeAnatomy copied{.node = kCopied, .lane = Lane::Tp};
  const bool is_narrow = sums.wire != base::DType::F32;
  std::vector<StepNodeAnatomy> widened;
  for (const BucketAnatomy& bucket : anatomy.buckets) {
    std::vector<Node> after;
    if (bucket.has_table && anatomy.tie != Tie::None) after.push_back(kTie);
    const Sums over = bucket.part == Part::Dense ? sums.dense : sums.expert;
    StepNodeAnatomy& next = has_copies && bucket.part == Part::Dense ? copied : norm;
    if (over == Sums::None) {
      std::ranges::copy(after, std::back_inserter(next.after));
      std::ranges::copy(bucket.pieces, std::back_inserter(next.gradients));
      continue;
    }
    next.after.push_back(is_narrow ? bucket.widen() : bucket.reduce());
    StepNodeAnatomy ready{.node = bucket.reduce(),
                          .lane = Lane::Dp,
                          .after = std::move(after),
                          .gradients = bucket.pieces};
    if (is_narrow) {
      ready.node = bucket.narrow();
      ready.lane = Lane::Compute;
      end.push_back(std::move(ready));
      ready = {.node = bucket.reduce(), .lane = Lane::Dp, .after = {bucket.narrow()}};
      widened.push_back({.node = bucket.widen(), .after = {bucket.reduce()}});
    }
    end.push_back(std::move(ready));
  }
  // After all sums, so that none waits for another.
  std::ranges::move(widened, std::back_inserter(end));
  if (has_copies) {
    norm.after.push_back(copied.node);
    end.push_back(std::move(copied));
  }
  end.push_back(std::move(norm));
  const bool has_totals = sums.totals == Sums::OverRanks;
  if (has_totals) end.push_back({.node = kTotals, .lane = Lane::Dp, .after = {kNorm}});
  end.push_back({.node = kClip, .lane = Lane::Host, .after = {has_totals ? kTotals : kNorm}});
  end.push_back({.node = kOptimizer, .after = {kClip}});
  for (const BucketAnatomy& bucket : anatomy.buckets) {
    if (bucket.shards == 1) continue;
    end.push_back({.node = bucket.gather(), .lane = Lane::Dp, .after = {kOptimizer}});
  }
  return end;
}

std::vector<StepNodeAnatomy> forward_end(const ReductionScope& sums) {
  if (sums.totals == Sums::None) return {};
  return {{.node = kTotals, .lane = Lane::Dp}};
}

const StepNodeAnatomy& step_node_of(const Anatomy& anatomy, const Node& node) {
  for (const auto* nodes : {&anatomy.step_start, &anatomy.step_end, &anatomy.forward_end}) {
    for (const StepNodeAnatomy& known : *nodes) {
      if (known.node == node) return known;
    }
  }
  UNREACHABLE("no step of this rank has {}", print(node));
}

std::vector<Node> step_node_needs(const Anatomy& anatomy,
                                  const Node& node,
                                  int micro_batches,
                                  StepKind kind) {
  if (kind == StepKind::ForwardOnly) return forward_ends(anatomy, micro_batches);
  const StepNodeAnatomy& known = step_node_of(anatomy, node);
  std::vector<Node> needs = known.after;
  for (const PieceAt& at : known.gradients) {
    add_last_gradients(anatomy, at, micro_batches - 1, needs);
  }
  return needs;
}

}  // namespace weft::schedule
