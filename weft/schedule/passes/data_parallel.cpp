#include "weft/schedule/passes/data_parallel.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "weft/base/casts.h"
#include "weft/base/check.h"
#include "weft/schedule/dependencies.h"
#include "weft/schedule/passes/rewrite.h"

namespace weft::schedule {
namespace {

using base::at;

NamedEntries take(NamedEntries& entries, const auto& is_taken) {
  NamedEntries taken, others;
  for (NamedEntry& entry : entries) {
    (is_taken(entry.node) ? taken : others).push_back(std::move(entry));
  }
  entries = std::move(others);
  return taken;
}

// Nodes to insert before entries of an order.
class Insertions {
 public:
  explicit Insertions(std::size_t entries) : before_(entries + 1) {}

  void add(std::size_t place, const Node& node) { before_[place].push_back(node); }

  NamedEntries into(NamedEntries entries) const {
    NamedEntries order;
    for (std::size_t i = 0; i < before_.size(); ++i) {
      for (const Node& node : before_[i]) order.push_back({.node = node, .waits = {}});
      if (i < entries.size()) order.push_back(std::move(entries[i]));
    }
    return order;
  }

 private:
  std::vector<std::vector<Node>> before_;  // by entry; the last is the end
};

// Gather with its chunk, and the first entry that reads its weights.
struct Gathered {
  Node node;
  int chunk = 0;
  std::size_t first_read = 0;
};

std::vector<Gathered> gathers_by_use(const NamedEntries& entries, const Anatomy& ahead) {
  std::unordered_map<Node, std::size_t, NodeHash> first_read;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const Node& node = entries[i].node;
    if (node.direction != Direction::F) continue;
    const auto found = ahead.gathered_for.find({.layer = node.layer, .piece = node.piece});
    if (found == ahead.gathered_for.end()) continue;
    for (const Node& gather : found->second) first_read.try_emplace(gather, i);
  }
  std::vector<Gathered> gathers;
  for (const BucketAnatomy& bucket : ahead.buckets) {
    const auto read = first_read.find(bucket.gather());
    if (read == first_read.end()) continue;
    gathers.push_back({.node = read->first, .chunk = bucket.chunk, .first_read = read->second});
  }
  std::ranges::stable_sort(gathers, {}, &Gathered::first_read);
  return gathers;
}

// First compute entry of a forward turn.
std::size_t begin_of(const NamedEntries& entries, const Anatomy& anatomy, const Turn& turn) {
  const int stage = anatomy.chunks[at(turn.chunk)].stage;
  const auto found = std::ranges::find_if(entries, [&](const NamedEntry& entry) {
    const Node& node = entry.node;
    return node.direction == Direction::F && node.micro_batch == turn.micro_batch &&
           !is_exchange(node) && chunk_of(anatomy, node).stage == stage;
  });
  return static_cast<std::size_t>(found - entries.begin());
}

// Weights of the first two chunks are gathered at once. Those of a later chunk start when the first
// stage reaches the chunk before it: on stage r, that is r turns earlier.
std::size_t aligned_place(const NamedEntries& entries,
                          const Anatomy& anatomy,
                          const PipelineShape& shape,
                          const Gathered& gather) {
  if (gather.chunk <= 1) return 0;
  const std::vector<Turn> turns = forward_turns(shape);
  const auto first = std::ranges::find(turns, gather.chunk - 1, &Turn::chunk);
  CHECK(first != turns.end(), "no turn of chunk {}", gather.chunk - 1);
  const auto turn = std::max<std::ptrdiff_t>(0, first - turns.begin() - shape.pp_rank);
  return std::min(gather.first_read, begin_of(entries, anatomy, turns[at(turn)]));
}

NamedEntries with_early_reductions(NamedEntries entries,
                                   const Anatomy& anatomy,
                                   int micro_batches) {
  // Excludes the sum over tensor-parallel ranks, which comes later.
  const NamedEntries moved = take(entries, [](const Node& node) {
    return node.piece == Piece::Narrow ||
           (node.piece == Piece::Reduce && members_of(node) == Members::Gradients);
  });
  // Earliest place of a node; for a moved node, its new place.
  std::unordered_map<Node, std::size_t, NodeHash> place_behind;
  for (std::size_t i = 0; i < entries.size(); ++i) place_behind.emplace(entries[i].node, i + 1);
  Insertions insertions(entries.size());
  for (const NamedEntry& entry : moved) {
    std::size_t behind = 0;
    for (const Node& need : required(anatomy, entry.node, micro_batches, StepKind::Training)) {
      behind = std::max(behind, place_behind.at(need));
    }
    insertions.add(behind, entry.node);
    place_behind.emplace(entry.node, behind);
  }
  return insertions.into(std::move(entries));
}

NamedEntries with_gathers_placed(NamedEntries entries,
                                 const Anatomy& ahead,
                                 const PipelineShape& shape,
                                 GatherStart start) {
  const auto is_last = [](const Node& node) {
    return node.piece == Piece::Gather || node.piece == Piece::Optimizer;
  };
  take(entries, is_last);
  const std::vector<Gathered> gathers = gathers_by_use(entries, ahead);
  Insertions insertions(entries.size());
  std::size_t now = 0, one_ahead = 0;  // current reader, and the one before it
  for (const Gathered& gather : gathers) {
    if (gather.first_read != now) one_ahead = std::exchange(now, gather.first_read);
    insertions.add(
        start == GatherStart::OneAhead ? one_ahead : aligned_place(entries, ahead, shape, gather),
        gather.node);
  }
  for (const StepNodeAnatomy& end : ahead.step_end) {
    if (is_last(end.node)) insertions.add(entries.size(), end.node);
  }
  return insertions.into(std::move(entries));
}

}  // namespace

Anatomy with_gathers_ahead(Anatomy anatomy, FirstGather first) {
  const Node whole{.piece = Piece::Optimizer};
  Node begun = whole, rest = whole;
  begun.slice = 0;
  rest.slice = 1;
  const bool has_later = std::ranges::any_of(anatomy.buckets, [](const BucketAnatomy& bucket) {
    return bucket.shards > 1 && bucket.chunk > 0;
  });
  const bool under_optimizer = has_later && first == FirstGather::UnderOptimizer;
  std::erase_if(anatomy.step_end, [&](const StepNodeAnatomy& end) {
    return end.node.piece == Piece::Gather || (under_optimizer && end.node == whole);
  });
  if (under_optimizer) {
    anatomy.step_end.push_back({.node = begun, .after = {{.piece = Piece::Clip}}});
  }
  for (const BucketAnatomy& bucket : anatomy.buckets) {
    if (bucket.shards == 1) continue;
    const Node gather = bucket.gather();
    if (under_optimizer && bucket.chunk == 0) {
      anatomy.step_end.push_back({.node = gather, .lane = Lane::Dp, .after = {begun}});
      continue;
    }
    anatomy.step_start.push_back({.node = gather, .lane = Lane::Dp});
    for (const PieceAt& reader : bucket.pieces) anatomy.gathered_for[reader].push_back(gather);
  }
  if (under_optimizer) anatomy.step_end.push_back({.node = rest, .after = {begun}});
  return anatomy;
}

Graph place_exchanges(const Graph& graph,
                      const Anatomy& anatomy,
                      const PipelineShape& shape,
                      ReduceStart reduce,
                      GatherStart gather) {
  NamedEntries entries = named_entries(graph);
  if (reduce == ReduceStart::Early) {
    entries = with_early_reductions(std::move(entries), anatomy, shape.micro_batches);
  }
  if (!anatomy.step_start.empty()) {
    entries = with_gathers_placed(std::move(entries), anatomy, shape, gather);
  }
  return write(entries, anatomy, shape.micro_batches);
}

}  // namespace weft::schedule
