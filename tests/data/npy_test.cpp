#include "weft/data/npy.h"

#include <gtest/gtest.h>

#include "weft/base/error.h"
#include "weft/base/text.h"

namespace weft::data {
namespace npy_test {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Header as NumPy writes it, padded to 64 bytes.
std::string head(const std::string& dict, char version = 1) {
  std::string all = std::string("\x93NUMPY") + version + '\0';
  const std::size_t before = all.size() + (version == 1 ? 2 : 4);
  std::string text = dict;
  text.append(63 - (before + text.size()) % 64, ' ');
  text += '\n';
  const auto size = static_cast<std::uint32_t>(text.size());
  all.append(reinterpret_cast<const char*>(&size), version == 1 ? 2 : 4);
  return all + text;
}

std::string dict(const std::string& descr, const std::string& shape) {
  return base::text("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}", descr, shape);
}

NpyArray parse(const std::string& file) {
  return parse_npy(std::as_bytes(std::span(file)), file.size(), "a.npy");
}

std::string complaint(const std::string& file) {
  try {
    parse(file);
  } catch (const base::ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(Npy, ReadsWhatNumPyWrites) {
  for (const char version : {1, 2, 3}) {
    const std::string file = head(dict("<i4", "(2, 3)"), version) + std::string(24, '\0');
    const NpyArray array = parse(file);
    EXPECT_EQ(array.type, IntegerType::I32);
    EXPECT_EQ(array.dimensions, 2);
    EXPECT_EQ(array.rows, 2u);
    EXPECT_EQ(array.columns, 3u);
    EXPECT_EQ(array.begin, file.size() - 24);
  }
  const NpyArray line = parse(head(dict("<u2", "(5,)")) + std::string(10, '\0'));
  EXPECT_EQ(line.type, IntegerType::U16);
  EXPECT_EQ(line.rows, 1u);
  EXPECT_EQ(line.columns, 5u);
  EXPECT_EQ(parse(head(dict("|u1", "(0,)"))).columns, 0u);
  EXPECT_EQ(parse(head(dict("<u8", "(1,)")) + std::string(8, '\0')).type, IntegerType::U64);
}

TEST(Npy, WhatIsNoArrayOfIdsIsNamedWithItsRemedy) {
  EXPECT_PRED2(has, complaint(head(dict("<f4", "(1,)")) + "1234"), "'<f4'");
  EXPECT_PRED2(has, complaint(head(dict(">i4", "(1,)")) + "1234"), "astype('<i4')");
  EXPECT_PRED2(has, complaint(head(dict("<i3", "(1,)")) + "123"), "'<i3'");
  EXPECT_PRED2(has, complaint(head(dict("<i4", "()")) + "1234"), "0 dimensions");
  EXPECT_PRED2(has, complaint(head(dict("<i4", "(1, 1, 1)")) + "1234"), "3 dimensions");
  EXPECT_PRED2(has,
               complaint(head("{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': (1,)}")),
               "records");
  EXPECT_PRED2(has,
               complaint(head("{'descr': '<i4', 'fortran_order': True, 'shape': (1, 1)}") + "1234"),
               "ascontiguousarray");
  EXPECT_PRED2(has, complaint(head("{'descr': '<i4', 'shape': (1,)}") + "1234"), "fortran_order");
  EXPECT_PRED2(has, complaint(head("{'descr': '<i4', 'descr': '<i4'}")), "twice");
  EXPECT_PRED2(has, complaint(head(dict("<i4", "(1,)"), 4) + "1234"), "version 4");
  EXPECT_PRED2(has, complaint("hello, this is text"), "does not begin");
  EXPECT_PRED2(has, complaint(""), "0 bytes");
}

TEST(Npy, ClaimsAreHeldAgainstTheFile) {
  for (const char* shape : {"(2,)",
                            "(0,)",
                            "(4611686018427387905,)",
                            "(18446744073709551615,)",
                            "(18446744073709551616,)",
                            "(4294967296, 4294967296)",
                            "(9223372036854775808, 2)",
                            "(-1,)"}) {
    EXPECT_NE(complaint(head(dict("<i4", shape)) + "1234"), "") << shape;
  }
  EXPECT_EQ(parse(head(dict("<i4", "(9223372036854775808, 0)"))).columns, 0u);
  std::string long_header = head(dict("<i4", "(1,)"), 2) + "1234";
  long_header.replace(8, 4, "\xff\xff\xff\xff");
  EXPECT_PRED2(has, complaint(long_header), "4294967295");
}

TEST(Npy, EveryTruncationIsRejected) {
  const std::string file = head(dict("<i4", "(1,)")) + "1234";
  for (std::size_t size = 0; size < file.size(); ++size) {
    EXPECT_NE(complaint(file.substr(0, size)), "") << size;
  }
}

}  // namespace npy_test
}  // namespace weft::data
