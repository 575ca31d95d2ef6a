#include "weft/tensor/cpu/streaming_copy.h"

#include <gtest/gtest.h>

#include <vector>

namespace weft::tensor::cpu {
namespace {

std::vector<std::byte> counted(std::size_t bytes) {
  std::vector<std::byte> values(bytes);
  for (std::size_t i = 0; i < bytes; ++i) values[i] = static_cast<std::byte>(i * 7 + 1);
  return values;
}

TEST(StreamingCopy, WritesAllAndNothingElseWhereverItBeginsAndEnds) {
  constexpr std::size_t kMost = 400;
  const std::vector<std::byte> source = counted(kMost + 64);
  for (const std::size_t bytes : {0u, 1u, 15u, 63u, 64u, 65u, 127u, 128u, 200u, 400u}) {
    for (std::size_t from = 0; from < 64; from += 9) {
      for (std::size_t to = 0; to < 64; to += 5) {
        std::vector<std::byte> target(kMost + 128), expected = target;
        std::copy_n(source.begin() + from, bytes, expected.begin() + to);
        streaming_copy(target.data() + to, source.data() + from, bytes);
        ASSERT_EQ(target, expected) << bytes << " bytes from " << from << " to " << to;
      }
    }
  }
}

}  // namespace
}  // namespace weft::tensor::cpu
