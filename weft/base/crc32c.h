// CRC-32C (Castagnoli), the checksum that tells damaged bytes from whole ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace weft::base {

std::uint32_t crc32c(std::span<const std::byte> bytes);
std::uint32_t crc32c(std::string_view bytes);

}  // namespace weft::base
