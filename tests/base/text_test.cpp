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

TEST(Text, OneThingIsNotManyThings) {
  EXPECT_EQ(counted(1, "step"), "1 step");
  EXPECT_EQ(counted(0, "step"), "0 steps");
  EXPECT_EQ(counted(2, "micro-batch"), "2 micro-batches");
  EXPECT_EQ(counted(3, "copy"), "3 copies");
  EXPECT_EQ(counted(3, "key"), "3 keys");
  EXPECT_EQ(counted(2, "process"), "2 processes");
  EXPECT_EQ(plural(1, "layer"), "layer");
  EXPECT_EQ(with_article("olmoe"), "an olmoe");
  EXPECT_EQ(with_article("mixtral"), "a mixtral");
}

TEST(Text, WhatSteersATerminalIsNotShown) {
  EXPECT_EQ(shown("\x1b[31mred\x07\n"), R"(\x1b[31mred\x07\n)");
  EXPECT_EQ(shown(std::string(100, 'a')).size(), 83u) << "cut, and marked as cut";
  EXPECT_EQ(without_controls("two\nlines\x1b[2J"), "two\nlines\\x1b[2J");
}

}  // namespace text_test
}  // namespace weft::base
