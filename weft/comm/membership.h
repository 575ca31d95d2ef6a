// Who is in a group.
#pragma once

#include <string>
#include <vector>

namespace weft::comm {

// A group as one member sees it.
struct Membership {
  std::string name;
  std::vector<int> members;  // world ranks
  int self = 0;              // index in members

  int size() const { return static_cast<int>(members.size()); }
  int rank_of(int member) const { return members[static_cast<std::size_t>(member)]; }
  int world_rank() const { return rank_of(self); }
};

// CHECKs that the ranks are distinct and of the world, and that this rank is one of them.
Membership make_membership(std::string name, std::vector<int> members, int rank, int world);

}  // namespace weft::comm
