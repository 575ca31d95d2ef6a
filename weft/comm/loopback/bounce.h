// Bytes that leave one rank and come back, through host memory or inside the device.
#pragma once

#include <functional>
#include <span>

#include "weft/comm/transport.h"

namespace weft::comm::loopback {

// Copies the outgoing bytes of each foreign part to host memory and the expected incoming bytes
// back from there. Incoming bytes beyond the outgoing ones are undefined. The own part is copied in
// the device at the same time. A part without a destination (in = nullptr) is received into scratch
// memory. Both directions overlap; the host memory has a fixed size.
void bounce(tensor::Transfers& transfers, std::span<const Part> parts, int self);

// Variant inside the device. A part without a destination is not copied.
void hand_back(tensor::Transfers& transfers, std::span<const Part> parts, int self);

// Variant for messages of a few bytes: all of it lies in host memory at once, the own part too.
// `answer` turns the first out_bytes of a part into its first in_bytes. A buffer that several parts
// send goes to the host once: a small copy takes longer to start than to run.
using Answer = std::function<void(const Part& part, std::byte* bytes)>;
void bounce_answered(tensor::Transfers& transfers,
                     std::span<const Part> parts,
                     int self,
                     const Answer& answer);

}  // namespace weft::comm::loopback
