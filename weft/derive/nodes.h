// Where the ranks of a group lie, in nodes of equal size.
#pragma once

#include <cstdint>
#include <vector>

namespace weft::derive {

// Members in each node that a group is in, in the order of its ranks.
std::vector<std::int64_t> members_by_node(const std::vector<int>& group,
                                          std::int64_t ranks_per_node);

// A group as one of its ranks sees it.
struct GroupPlace {
  int rank = 0;
  std::int64_t nodes = 1;    // the group is in
  std::int64_t in_node = 1;  // members in the rank's node, itself among them
};
// Of the rank with the most members of its group in other nodes, for which the others wait; the
// first of several. Wants groups of one size.
GroupPlace most_remote(const std::vector<std::vector<int>>& groups, std::int64_t ranks_per_node);

}  // namespace weft::derive
