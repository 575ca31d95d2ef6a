// Where the ranks of a group lie, in machines of equal size.
#pragma once

#include <cstdint>
#include <vector>

namespace weft::derive {

// Members in each machine that a group is in, in the order of its ranks.
std::vector<std::int64_t> members_by_machine(const std::vector<int>& group,
                                             std::int64_t ranks_per_node);

// A group as one of its ranks sees it.
struct GroupPlace {
  int rank = 0;
  std::int64_t machines = 1;    // the group is in
  std::int64_t in_machine = 1;  // members in the rank's machine, itself among them
};
// Of the rank with the most members of its group in other machines, for which the others wait; the
// first of several. Wants groups of one size.
GroupPlace most_remote(const std::vector<std::vector<int>>& groups, std::int64_t ranks_per_node);

}  // namespace weft::derive
