// CRC-32C (Castagnoli): checksum that detects damaged bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace weft::base {

std::uint32_t crc32c(std::span<const std::byte> bytes);
std::uint32_t crc32c(std::string_view bytes);

// Portable version; crc32c() uses it on processors without a CRC instruction.
std::uint32_t crc32c_by_tables(std::span<const std::byte> bytes);

}  // namespace weft::base
