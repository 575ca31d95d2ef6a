// What a backend provides: one meeting of members in which bytes change hands. The collectives are
// written once above it.
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

// One meeting, as all who meet must see it. A Send of one member meets the Receive of another;
// everything else is a meeting of the whole group.
struct Call {
  Operation operation = Operation::Barrier;
  std::uint64_t sequence =
      0;                    // of collectives in the group; of a Send or Receive, in its direction
  std::int32_t step = 0;    // of an operation that takes several meetings
  std::int64_t extent = 0;  // bytes of a row (AllToAll) or of the tensor
  Content content = Content::Payload;  // for this member's counters
};

// What passes between this member and another, or a block of it.
struct Part {
  int member = 0;
  const std::byte* out = nullptr;
  std::int64_t out_bytes = 0;
  std::byte* in = nullptr;
  std::int64_t in_bytes = 0;
};

// The parts of each member, which stand side by side.
std::vector<std::span<const Part>> by_member(std::span<const Part> parts);

// What they have together.
std::int64_t out_bytes(std::span<const Part> parts);
std::int64_t in_bytes(std::span<const Part> parts);

class Transport {
 public:
  virtual ~Transport() = default;

  // Blocks the stream's thread that calls it: returns when this member's bytes have been taken and
  // the others' have arrived; throws SystemError when a peer fails, disagrees or does not come. A
  // collective has a part for every member in order, its own too (see copy_own), or as many for
  // each as rows have blocks. A Send or a Receive has one part, the peer's. Meetings of one group
  // may run on several threads at once. The parts are in device memory: `transfers` reaches it, and
  // nothing else.
  virtual void meet(const Call& call,
                    std::span<const Part> parts,
                    tensor::Transfers& transfers) = 0;

  // What one of several members of a collective has for itself: called before the meeting. A
  // transport that does nothing here copies it in the meeting, beside the rest.
  virtual void copy_own(std::span<const tensor::Copy> own, tensor::Transfers& transfers);

  // This rank failed: ends all ranks of the world.
  virtual void fail(const std::string& reason) = 0;
};

}  // namespace weft::comm
