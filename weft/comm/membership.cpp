#include "weft/comm/membership.h"

#include <algorithm>
#include <set>

#include "weft/base/check.h"

namespace weft::comm {

Membership make_membership(std::string name, std::vector<int> members, int rank, int world) {
  const std::set<int> distinct(members.begin(), members.end());
  CHECK(distinct.size() == members.size(),
        "group '{}' [{}] repeats a rank",
        name,
        fmt::join(members, " "));
  for (const int member : members)
    CHECK(member >= 0 && member < world,
          "rank {} in group '{}' of a world of {}",
          member,
          name,
          world);
  const auto self = std::find(members.begin(), members.end(), rank);
  CHECK(self != members.end(),
        "rank {} is not in group '{}' [{}]",
        rank,
        name,
        fmt::join(members, " "));
  const int index = static_cast<int>(self - members.begin());
  return {.name = std::move(name), .members = std::move(members), .self = index};
}

}  // namespace weft::comm
