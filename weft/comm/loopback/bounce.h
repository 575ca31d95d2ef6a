// Bytes that leave a rank, for host memory or as if they did, and come back.
#pragma once

#include <functional>
#include <span>

#include "weft/comm/transport.h"

namespace weft::comm::loopback {

// What goes out in each part that is not this member's own goes to host memory, and as many bytes
// as are expected come back from there: what went out, as far as it reaches. What comes in behind
// it is undefined. The own part is copied in the device, beside them. A part without a place to
// come to (in = nullptr) comes to memory that nobody reads. One direction runs beside the other,
// and host memory is of a fixed size.
void bounce(tensor::Transfers& transfers, std::span<const Part> parts, int self);

// The same inside the device. A part without a place to come to stays where it is.
void hand_back(tensor::Transfers& transfers, std::span<const Part> parts, int self);

// As bounce, with all of it in host memory at once, the own part too, where `answer` makes out of
// what went out in a part (its first out_bytes) what comes in (its first in_bytes). For messages of
// a few bytes, whose copies take longer to start than to run: what several parts send alike goes
// once.
using Answer = std::function<void(const Part& part, std::byte* bytes)>;
void bounce_answered(tensor::Transfers& transfers,
                     std::span<const Part> parts,
                     int self,
                     const Answer& answer);

}  // namespace weft::comm::loopback
