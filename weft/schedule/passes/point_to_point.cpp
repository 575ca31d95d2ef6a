#include "weft/schedule/passes/point_to_point.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <tuple>

#include "weft/base/check.h"
#include "weft/schedule/dependencies.h"
#include "weft/schedule/meeting.h"
#include "weft/schedule/passes/rewrite.h"

namespace weft::schedule {
namespace {

// Entry that consumes each receive: the first one that requires it.
std::map<Node, std::size_t> takers(const NamedEntries& entries,
                                   const Anatomy& anatomy,
                                   int micro_batches) {
  std::map<Node, std::size_t> takers;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    for (const Node& need : required(anatomy, entries[i].node, micro_batches, StepKind::Training)) {
      if (need.piece == anatomy.receive.piece) takers.emplace(need, i);
    }
  }
  return takers;
}

// Entries between two exchanges.
struct Round {
  NamedEntries receives, work, sends;
};

// Round of every turn of one pipeline rank.
class RoundOf {
 public:
  RoundOf(PipelineShape shape, int pp_rank) {
    shape.pp_rank = pp_rank;
    const std::vector<std::vector<Turn>> rounds = training_rounds(shape);
    count_ = static_cast<int>(rounds.size());
    for (int i = 0; i < count_; ++i) {
      for (const Turn& turn : rounds[static_cast<std::size_t>(i)]) {
        of_turn_[{turn.direction == Direction::F, turn.chunk, turn.micro_batch}] = i;
      }
    }
  }

  int count() const { return count_; }
  int operator()(const Node& node, int chunk) const {
    return of_turn_.at({node.direction == Direction::F, chunk, node.micro_batch});
  }

 private:
  int count_ = 0;
  std::map<std::tuple<bool, int, int>, int> of_turn_;
};

// Round before which a receive is posted. Round i of rank r happens at time i + r; a send after a
// round is received at that time; its data may be needed only rounds later.
class PostingRound {
 public:
  PostingRound(const PipelineShape& shape, const RoundOf& own) : shape_(shape), own_(own) {
    for (int rank = 0; rank < shape.pp; ++rank) senders_.emplace_back(shape, rank);
  }

  int operator()(const Node& receive) const {
    // consuming round of a ring placement
    const int needed = own_(receive, receive.chunk / shape_.pp);
    if (shape_.vpp == 1) return needed;
    const int stage = meeting_of(receive).chunk, sender = stage % shape_.pp;
    const int sent = senders_[static_cast<std::size_t>(sender)](receive, stage / shape_.pp);
    return std::clamp(sent + sender - shape_.pp_rank + 1, 0, needed);
  }

 private:
  const PipelineShape& shape_;
  const RoundOf& own_;
  std::vector<RoundOf> senders_;
};

}  // namespace

Graph prefetch_receives(const Graph& graph,
                        const Anatomy& anatomy,
                        int micro_batches,
                        FirstReceive first) {
  const NamedEntries entries = named_entries(graph);
  const std::map<Node, std::size_t> taken_by = takers(entries, anatomy, micro_batches);
  std::vector<NamedEntries> posted(entries.size());  // at, or after, each entry
  NamedEntries order;
  std::array<std::optional<std::size_t>, kLanes> last_taker;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].node.piece != anatomy.receive.piece) continue;
    auto& last = last_taker[static_cast<std::size_t>(lane_of(anatomy, entries[i].node))];
    const bool at_once = !last && first == FirstReceive::AtOnce;
    (at_once ? order : posted[last.value_or(i)]).push_back(entries[i]);
    last = taken_by.at(entries[i].node);
  }
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].node.piece != anatomy.receive.piece) order.push_back(entries[i]);
    for (NamedEntry& entry : posted[i]) order.push_back(std::move(entry));
  }
  return write(order, anatomy, micro_batches);
}

Graph batch_exchanges(const Graph& graph, const Anatomy& anatomy, const PipelineShape& shape) {
  CHECK(shape.order == TurnOrder::OneForwardOneBackward, "rounds that are not of one length");
  const RoundOf round_of(shape, shape.pp_rank);
  const PostingRound posted_before(shape, round_of);
  std::vector<Round> rounds(static_cast<std::size_t>(round_of.count()));
  NamedEntries step_end;
  for (NamedEntry& entry : named_entries(graph)) {
    const Node& node = entry.node;
    if (node.direction == Direction::None) {
      step_end.push_back(std::move(entry));
    } else if (node.piece == anatomy.receive.piece) {
      rounds[static_cast<std::size_t>(posted_before(node))].receives.push_back(std::move(entry));
    } else {
      const int chunk = chunk_of(anatomy, node).index;
      Round& round = rounds[static_cast<std::size_t>(round_of(node, chunk))];
      (node.piece == anatomy.send.piece ? round.sends : round.work).push_back(std::move(entry));
    }
  }
  NamedEntries order;
  std::vector<Node> exchange;
  const auto add = [&](NamedEntries& entries) {
    for (NamedEntry& entry : entries) {
      exchange.push_back(entry.node);
      order.push_back(std::move(entry));
    }
  };
  for (std::size_t i = 0; i < rounds.size(); ++i) {
    if (i > 0) add(rounds[i - 1].sends);
    add(rounds[i].receives);
    for (NamedEntry& entry : rounds[i].work) {
      if (lane_of(anatomy, entry.node) == Lane::Compute) {
        entry.waits.insert(entry.waits.end(), exchange.begin(), exchange.end());
        exchange.clear();
      }
      order.push_back(std::move(entry));
    }
  }
  add(rounds.back().sends);
  for (NamedEntry& entry : step_end) order.push_back(std::move(entry));
  return write(order, anatomy, shape.micro_batches);
}

}  // namespace weft::schedule
