#include "weft/base/crc32c.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace weft::base {
namespace crc32c_test {

TEST(Crc32c, GivesThePublishedValues) {
  EXPECT_EQ(crc32c(std::string_view()), 0u);
  EXPECT_EQ(crc32c(std::string_view("123456789")), 0xe3069283u);
  EXPECT_EQ(crc32c(std::string_view(std::string(32, '\0'))), 0x8a9136aau);    // RFC 3720
  EXPECT_EQ(crc32c(std::string_view(std::string(32, '\xff'))), 0x62a8ab43u);  // RFC 3720
}

// Sizes around the ends of words and of the instruction's parallel chains, from any address.
TEST(Crc32c, IsTheSameByInstructionAndByTables) {
  std::vector<std::byte> bytes(40000);
  std::uint32_t state = 1;
  for (std::byte& byte : bytes) {
    state = state * 1664525 + 1013904223;
    byte = static_cast<std::byte>(state >> 24);
  }
  const std::span<const std::byte> all(bytes);
  for (const std::size_t size : {0, 1, 7, 8, 9, 4095, 12287, 12288, 12289, 24576, 36871}) {
    for (const std::size_t from : {0, 1, 3, 8}) {
      const auto part = all.subspan(from, size);
      EXPECT_EQ(crc32c(part), crc32c_by_tables(part)) << size << " bytes from " << from;
    }
  }
}

TEST(Crc32c, EveryFlippedBitShows) {
  std::string bytes = "what is written is what is read";
  const std::uint32_t whole = crc32c(bytes);
  for (char& byte : bytes) {
    for (int bit = 0; bit < 8; ++bit) {
      byte = static_cast<char>(byte ^ (1 << bit));
      EXPECT_NE(crc32c(bytes), whole);
      byte = static_cast<char>(byte ^ (1 << bit));
    }
  }
}

}  // namespace crc32c_test
}  // namespace weft::base
