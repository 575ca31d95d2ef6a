#include "weft/base/crc32c.h"

#include <array>
#include <bit>
#include <cstring>

#include "weft/base/crc32c_instruction.h"

namespace weft::base {
namespace {

constexpr std::uint32_t kPolynomial = 0x82f63b78;  // reflected
constexpr std::size_t kAtOnce = 8;                 // bytes

using Tables = std::array<std::array<std::uint32_t, 256>, kAtOnce>;

// Table k: contribution of a byte that is followed by k more.
constexpr Tables make_tables() {
  Tables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t rest = byte;
    for (int bit = 0; bit < 8; ++bit) rest = (rest >> 1) ^ ((rest & 1) != 0 ? kPolynomial : 0);
    tables[0][byte] = rest;
  }
  for (std::size_t k = 1; k < kAtOnce; ++k) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t before = tables[k - 1][byte];
      tables[k][byte] = (before >> 8) ^ tables[0][before & 0xff];
    }
  }
  return tables;
}

constexpr Tables kTables = make_tables();

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes) {
  if (has_crc32c_instruction()) return ~crc32c_by_instruction(0xffffffff, bytes);
  return crc32c_by_tables(bytes);
}

// Processes eight bytes at a time, each through the table of its position: one dependent step in
// place of eight.
std::uint32_t crc32c_by_tables(std::span<const std::byte> bytes) {
  static_assert(std::endian::native == std::endian::little);
  std::uint32_t rest = 0xffffffff;
  while (bytes.size() >= kAtOnce) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), sizeof word);
    word ^= rest;
    rest = 0;
    for (std::size_t i = 0; i < kAtOnce; ++i) {
      rest ^= kTables[kAtOnce - 1 - i][(word >> (8 * i)) & 0xff];
    }
    bytes = bytes.subspan(kAtOnce);
  }
  for (const std::byte byte : bytes) {
    rest = (rest >> 8) ^ kTables[0][(rest ^ static_cast<std::uint32_t>(byte)) & 0xff];
  }
  return ~rest;
}

std::uint32_t crc32c(std::string_view bytes) { return crc32c(std::as_bytes(std::span(bytes))); }

}  // namespace weft::base
