// Members of a group.
#pragma once

#include <string>
#include <vector>

namespace weft::comm {

// One member's view of a group.
struct Membership {
  std::string name;
  std::vector<int> members;  // world ranks
  int self = 0;              // index in members

  int size() const { return static_cast<int>(members.size()); }
  int rank_of(int member) const { return members[static_cast<std::size_t>(member)]; }
  int world_rank() const { return rank_of(self); }
};

// CHECKs that the ranks are distinct, lie in the world and include this rank.
Membership make_membership(std::string name, std::vector<int> members, int rank, int world);

}  // namespace weft::comm
