// CRC-32C by the processor's instruction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace weft::base {

// Detected once.
bool has_crc32c_instruction();

// Value of the CRC register after these bytes. Requires the instruction.
std::uint32_t crc32c_by_instruction(std::uint32_t before, std::span<const std::byte> bytes);

}  // namespace weft::base
