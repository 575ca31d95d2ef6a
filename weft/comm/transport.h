// Interface of a backend: one meeting of members that exchanges bytes. The collectives are written
// once above it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "weft/comm/communicator.h"
#include "weft/comm/membership.h"
#include "weft/tensor/transfers.h"

namespace weft::comm {

// One meeting; all its members must state the same call. A Send of one member meets the Receive of
// another. Any other meeting is one of the whole group.
struct Call {
  Operation operation = Operation::Barrier;
  std::uint64_t sequence =
      0;  // number of the collective in the group, or of the Send or Receive in its direction
  std::int32_t step = 0;               // index of the meeting in an operation with several meetings
  std::int64_t extent = 0;             // bytes of a row (AllToAll) or of the tensor
  Content content = Content::Payload;  // for the counters of this member
};

// Bytes between this member and another, or one block of them.
struct Part {
  int member = 0;
  const std::byte* out = nullptr;
  std::int64_t out_bytes = 0;
  std::byte* in = nullptr;
  std::int64_t in_bytes = 0;
};

// Parts grouped by member; the parts of a member must be adjacent.
std::vector<std::span<const Part>> by_member(std::span<const Part> parts);

// Sums over the parts.
std::int64_t out_bytes(std::span<const Part> parts);
std::int64_t in_bytes(std::span<const Part> parts);

class Transport {
 public:
  virtual ~Transport() = default;

  // Blocks the calling stream thread. Returns when the peers have taken this member's bytes and
  // their bytes have arrived. SystemError if a peer fails, disagrees or misses the timeout. A
  // collective has one part per member and block in member order, including its own (see copy_own).
  // A Send or Receive has one part, for the peer. Meetings of one group may run on several threads
  // at once. The parts lie in device memory; only `transfers` can access it.
  virtual void meet(const Call& call,
                    std::span<const Part> parts,
                    tensor::Transfers& transfers) = 0;

  // Copies the own part of a collective with several members; called before the meeting. A
  // transport may do nothing here and copy during the meeting.
  virtual void copy_own(std::span<const tensor::Copy> own, tensor::Transfers& transfers);

  // Reports the failure of this rank: ends all ranks of the world.
  virtual void fail(const std::string& reason) = 0;
};

}  // namespace weft::comm
