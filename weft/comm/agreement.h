// Agreement of two members on operation and sizes. Each member states its terms; no byte is copied
// before they agree.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "weft/comm/transport.h"

namespace weft::comm {

// Terms that one member states to another. Sent between processes as raw bytes.
struct Terms {
  std::uint64_t sequence = 0;
  std::int64_t extent = 0;
  std::int64_t out_bytes = 0;
  std::int64_t in_bytes = 0;
  std::uint64_t out_blocks = 0;  // fingerprint of the bytes of every block
  std::uint64_t in_blocks = 0;
  std::int32_t step = 0;
  std::int32_t operation = 0;
};

Terms terms_of(const Call& call, std::span<const Part> parts_of_member);

// Throws SystemError with both ranks and the differing field. `theirs` is untrusted input.
void check_agreement(const Membership& group, const Terms& mine, int peer, const Terms& theirs);

// Prefix of messages about a meeting: "'ep' all_to_all #12".
std::string describe(const Membership& group, const Call& call);

// Error text: members that missed the timeout.
std::string describe_late(const Membership& group,
                          const Call& call,
                          std::span<const int> late_members,
                          double timeout_seconds);

}  // namespace weft::comm
