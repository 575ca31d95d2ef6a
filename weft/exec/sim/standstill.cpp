#include "weft/exec/sim/standstill.h"

#include <algorithm>
#include <optional>

#include "weft/base/check.h"
#include "weft/base/text.h"

namespace weft::exec::sim {
namespace {

using schedule::kNone;

class Standstill {
 public:
  Standstill(const SimulatedStep& step,
             const std::vector<const Dependencies*>& dependencies,
             const Operations& operations,
             const std::function<bool(Place)>& is_over)
      : step_(step), dependencies_(dependencies), operations_(operations), is_over_(is_over) {}

  // Follows the waits from the first incomplete entry until an entry repeats or the chain ends.
  std::string name() const {
    std::vector<Place> path{first_open()};
    while (true) {
      const Place next = blocker(path.back());
      if (next.entry == kNone) {
        return sentence(path, base::text("rank {}, which never issues it", next.rank));
      }
      const auto seen = std::ranges::find(path, next);
      if (seen != path.end()) {
        path.erase(path.begin(), seen);
        return sentence(path, name_of(next));
      }
      path.push_back(next);
    }
  }

 private:
  const schedule::Entry& entry_at(Place place) const {
    return step_.graphs[static_cast<std::size_t>(place.rank)]
        ->entries[static_cast<std::size_t>(place.entry)];
  }

  std::string name_of(Place place) const {
    return base::text("{} on rank {}", schedule::print(entry_at(place).node), place.rank);
  }

  Place first_open() const {
    for (int rank = 0; static_cast<std::size_t>(rank) < dependencies_.size(); ++rank) {
      const int size = dependencies_[static_cast<std::size_t>(rank)]->size();
      for (int entry = 0; entry < size; ++entry) {
        if (!is_over_({rank, entry})) return {rank, entry};
      }
    }
    UNREACHABLE("every entry is over");
  }

  // Incomplete entry of the same rank that `place` starts after.
  std::optional<Place> blocker_here(Place place) const {
    const Dependencies& dependencies = *dependencies_[static_cast<std::size_t>(place.rank)];
    std::vector<int> candidates = entry_at(place).waits;
    candidates.push_back(dependencies.lane_before(place.entry));
    candidates.push_back(dependencies.hold_before(place.entry));
    for (const int entry : candidates) {
      if (entry != kNone && !is_over_({place.rank, entry})) return Place{place.rank, entry};
    }
    return std::nullopt;
  }

  // Entry that `place` waits for; entry kNone: a member lacks the operation.
  Place blocker(Place place) const {
    if (const std::optional<Place> here = blocker_here(place)) return *here;
    const int index = operations_.of(place.rank, place.entry);
    CHECK(index != kNone, "{} waits for nothing and is not over", name_of(place));
    const Operation& operation = operations_[index];
    for (std::size_t i = 0; i < operation.members.size(); ++i) {
      const Place member{operation.members[i], operation.entries[i]};
      if (member.entry == kNone || blocker_here(member)) return member;
    }
    UNREACHABLE("{}: every member has arrived", name_of(place));
  }

  std::string sentence(const std::vector<Place>& path, const std::string& last) const {
    std::string text = "the step comes to a standstill: ";
    for (const Place& place : path) text += name_of(place) + " waits for ";
    return text + last + "; members of a group must issue the same operations in the same order";
  }

  const SimulatedStep& step_;
  const std::vector<const Dependencies*>& dependencies_;
  const Operations& operations_;
  const std::function<bool(Place)>& is_over_;
};

}  // namespace

std::string name_standstill(const SimulatedStep& step,
                            const std::vector<const Dependencies*>& dependencies,
                            const Operations& operations,
                            const std::function<bool(Place)>& is_over) {
  return Standstill(step, dependencies, operations, is_over).name();
}

}  // namespace weft::exec::sim
