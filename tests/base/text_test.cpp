#include "weft/base/text.h"

#include <gtest/gtest.h>

namespace weft::base {
namespace text_test {

TEST(Text, NearestFindsTheLikelySlip) {
  const std::vector<std::string> keys{"model.hidden_size", "model.num_layers", "train.seed"};
  EXPECT_EQ(nearest("model.hiden_size", keys), "model.hidden_size");
  EXPECT_EQ(nearest("zzzzzzzzzzzzzzzzzz", keys), std::nullopt);
}

TEST(Text, NearestIsSilentWhereMoreThanAThirdOfTheLettersDiffer) {
  const std::vector<std::string> names{"task", "grid", "fp8"};
  EXPECT_EQ(nearest("rank", names), std::nullopt);
  EXPECT_EQ(nearest("tp", names), std::nullopt);
  EXPECT_EQ(nearest("gird", names), "grid") << "two letters swapped are one slip";
}

TEST(Text, NumbersMustBeWhole) {
  EXPECT_EQ(parse_integer("42"), 42);
  EXPECT_EQ(parse_integer("42x"), std::nullopt);
  EXPECT_EQ(parse_integer(""), std::nullopt);
  EXPECT_EQ(parse_integer("99999999999999999999"), std::nullopt);
  EXPECT_EQ(parse_number("1e-3"), 1e-3);
}

TEST(Text, SplitKeepsEmptyParts) {
  EXPECT_EQ(split("a,,b", ','), (std::vector<std::string>{"a", "", "b"}));
  EXPECT_EQ(trim("  x \n"), "x");
}

TEST(Text, BytesReadWell) {
  EXPECT_EQ(human_bytes(12), "12 B");
  EXPECT_EQ(human_bytes(1536), "1.5 KiB");
}

}  // namespace text_test
}  // namespace weft::base
