// CRC-32C (Castagnoli), the checksum that tells damaged bytes from whole ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace weft::base {

std::uint32_t crc32c(std::span<const std::byte> bytes);
std::uint32_t crc32c(std::string_view bytes);

// The same on any processor; crc32c() is it where there is no instruction for it.
std::uint32_t crc32c_by_tables(std::span<const std::byte> bytes);

}  // namespace weft::base
