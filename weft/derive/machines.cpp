#include "weft/derive/machines.h"

#include "weft/base/check.h"

namespace weft::derive {

std::vector<std::int64_t> members_by_machine(const std::vector<int>& group,
                                             std::int64_t ranks_per_node) {
  std::vector<std::int64_t> counts;
  std::int64_t last = -1;
  for (const int rank : group) {
    if (rank / ranks_per_node != last) counts.push_back(0);
    last = rank / ranks_per_node;
    ++counts.back();
  }
  return counts;
}

GroupPlace most_remote(const std::vector<std::vector<int>>& groups, std::int64_t ranks_per_node) {
  CHECK(!groups.empty() && !groups.front().empty(), "{} groups", groups.size());
  GroupPlace most{.in_machine = std::ssize(groups.front()) + 1};
  for (const std::vector<int>& group : groups) {
    const std::vector<std::int64_t> counts = members_by_machine(group, ranks_per_node);
    std::size_t first = 0;  // first member in the machine
    for (const std::int64_t count : counts) {
      if (count < most.in_machine) {
        most = {.rank = group[first], .machines = std::ssize(counts), .in_machine = count};
      }
      first += static_cast<std::size_t>(count);
    }
  }
  return most;
}

}  // namespace weft::derive
