#include "weft/exec/sim/operations.h"

#include <algorithm>
#include <unordered_map>

#include "weft/base/check.h"
#include "weft/schedule/meeting.h"

namespace weft::exec::sim {
namespace {

using schedule::kNone;
using schedule::Node;

// A rank issues a node once, so one member and the meeting's name identify an operation.
struct Key {
  int first_member = 0;
  Node meeting;

  bool operator==(const Key&) const = default;
};

struct KeyHash {
  std::size_t operator()(const Key& key) const {
    const Node& node = key.meeting;
    std::uint64_t hash = 0;
    for (const int field : {key.first_member,
                            node.layer,
                            node.chunk,
                            static_cast<int>(node.direction),
                            node.micro_batch,
                            static_cast<int>(node.piece),
                            static_cast<int>(node.part),
                            node.slice}) {
      hash = (hash ^ static_cast<std::uint32_t>(field)) * 0x9e3779b97f4a7c15u;
      hash ^= hash >> 32;
    }
    return hash;
  }
};

}  // namespace

Operations::Operations(const SimulatedStep& step) {
  std::unordered_map<Key, int, KeyHash> index;
  const int ranks = static_cast<int>(step.graphs.size());
  for (int rank = 0; rank < ranks; ++rank) {
    const std::vector<schedule::Entry>& entries =
        step.graphs[static_cast<std::size_t>(rank)]->entries;
    std::vector<int>& of = of_.emplace_back(entries.size(), kNone);
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (!schedule::is_meeting(entries[i])) continue;
      const std::vector<int> members = step.members(rank, entries[i]);
      if (members.size() < 2) continue;
      const Node meeting = schedule::meeting_of(entries[i].node);
      const auto [found, is_new] = index.try_emplace({members.front(), meeting}, size());
      if (is_new) {
        for (const int member : members) CHECK(member >= 0 && member < ranks, "rank {}", member);
        operations_.push_back({meeting, members, std::vector(members.size(), kNone)});
      }
      Operation& operation = operations_[static_cast<std::size_t>(found->second)];
      CHECK(operation.members == members, "{}: members differ", schedule::print(meeting));
      const auto me = std::ranges::find(members, rank);
      CHECK(me != members.end(), "{}: not a member", schedule::print(meeting));
      int& entry = operation.entries[static_cast<std::size_t>(me - members.begin())];
      CHECK(entry == kNone, "{} twice on rank {}", schedule::print(meeting), rank);
      entry = static_cast<int>(i);
      of[i] = found->second;
    }
  }
}

}  // namespace weft::exec::sim
