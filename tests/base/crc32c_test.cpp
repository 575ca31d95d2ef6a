#include "weft/base/crc32c.h"

#include <gtest/gtest.h>

#include <string>

namespace weft::base {
namespace crc32c_test {

TEST(Crc32c, GivesThePublishedValues) {
  EXPECT_EQ(crc32c(std::string_view()), 0u);
  EXPECT_EQ(crc32c(std::string_view("123456789")), 0xe3069283u);
  EXPECT_EQ(crc32c(std::string_view(std::string(32, '\0'))), 0x8a9136aau);    // RFC 3720
  EXPECT_EQ(crc32c(std::string_view(std::string(32, '\xff'))), 0x62a8ab43u);  // RFC 3720
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
