// Two members that meet must mean the same operation and the same sizes. Each states its terms;
// nothing is copied before they agree.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "weft/comm/transport.h"

namespace weft::comm {

// One member's terms towards another. Sent between processes as it stands.
struct Terms {
  std::uint64_t sequence = 0;
  std::int64_t extent = 0;
  std::int64_t out_bytes = 0;
  std::int64_t in_bytes = 0;
  std::uint64_t out_blocks = 0;  // fingerprints of what every block has
  std::uint64_t in_blocks = 0;
  std::int32_t step = 0;
  std::int32_t operation = 0;
};

Terms terms_of(const Call& call, std::span<const Part> parts_of_member);

// Throws SystemError naming both ranks and what differs. `theirs` is not trusted.
void check_agreement(const Membership& group, const Terms& mine, int peer, const Terms& theirs);

// "'ep' all_to_all #12", where texts about a meeting begin.
std::string describe(const Membership& group, const Call& call);

// The text for members that did not come in time.
std::string describe_late(const Membership& group,
                          const Call& call,
                          std::span<const int> late_members,
                          double timeout_seconds);

}  // namespace weft::comm
