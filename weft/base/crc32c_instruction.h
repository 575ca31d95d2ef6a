// CRC-32C by the processor's own instruction, where it has one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace weft::base {

// Looked up once.
bool has_crc32c_instruction();

// What a register of CRC-32C holds behind these bytes. Only where there is the instruction.
std::uint32_t crc32c_by_instruction(std::uint32_t before, std::span<const std::byte> bytes);

}  // namespace weft::base
