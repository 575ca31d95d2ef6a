// Distribution of a group's ranks over machines of equal size.
#pragma once

#include <cstdint>
#include <vector>

namespace weft::derive {

// Number of members in each machine of the group, in rank order.
std::vector<std::int64_t> members_by_machine(const std::vector<int>& group,
                                             std::int64_t ranks_per_node);

// Group as seen by one of its ranks.
struct GroupPlace {
  int rank = 0;
  std::int64_t machines = 1;    // machines of the group
  std::int64_t in_machine = 1;  // members in the rank's machine, including itself
};
// The rank with the most members of its group in other machines, which the others wait for; the
// first of several. Groups have one size.
GroupPlace most_remote(const std::vector<std::vector<int>>& groups, std::int64_t ranks_per_node);

}  // namespace weft::derive
