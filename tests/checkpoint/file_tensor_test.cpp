#include "weft/checkpoint/tensors/file_tensor.h"

#include <cmath>
#include <limits>

#include "tests/checkpoint/golden_support.h"

namespace weft::checkpoint {
namespace file_tensor_test {

template <typename Stored>
TensorView view(FileDtype dtype, const std::vector<Stored>& values) {
  return {.where = "'f': tensor 't'",
          .dtype = dtype,
          .shape = {static_cast<std::int64_t>(values.size())},
          .bytes = values.size() * sizeof(Stored),
          .read = bytes_of(std::as_bytes(std::span(values)))};
}

template <typename Out, typename Stored>
std::vector<Out> read(FileDtype dtype, const std::vector<Stored>& values, std::int64_t begin = 0) {
  std::vector<Out> out(values.size() - static_cast<std::size_t>(begin));
  read_elements(view(dtype, values), begin, std::span<Out>(out));
  return out;
}

TEST(FileTensor, DtypeWordsRoundTrip) {
  for (const char* name : {"F32", "BF16", "F8_E4M3", "I64", "BOOL", "U16"}) {
    EXPECT_EQ(word(*dtype_of(name)), name);
  }
  EXPECT_FALSE(dtype_of("F4").has_value());
  EXPECT_EQ(element_bytes(FileDtype::F64), 8u);
}

TEST(FileTensor, FloatingPointIsConverted) {
  EXPECT_EQ((read<float, double>(FileDtype::F64, {0.5, -2})), (std::vector<float>{0.5f, -2}));
  EXPECT_EQ((read<double, float>(FileDtype::F32, {0.5f, -2}, 1)), (std::vector<double>{-2}));
  EXPECT_EQ((read<float, std::uint16_t>(FileDtype::BF16, {0x3f80, 0xc040})),
            (std::vector<float>{1, -3}));
}

TEST(FileTensor, HalfPrecisionHasSubnormalsAndInfinities) {
  const auto values =
      read<float, std::uint16_t>(FileDtype::F16, {0x3c00, 0xc000, 0x0001, 0x7bff, 0x7c00, 0x7e00});
  EXPECT_EQ(values[0], 1.0f);
  EXPECT_EQ(values[1], -2.0f);
  EXPECT_EQ(values[2], 0x1p-24f);
  EXPECT_EQ(values[3], 65504.0f);
  EXPECT_TRUE(std::isinf(values[4]));
  EXPECT_TRUE(std::isnan(values[5]));
}

TEST(FileTensor, TokensAreReadFromBothWidths) {
  EXPECT_EQ((read<std::int32_t, std::int64_t>(FileDtype::I64, {7, -1})),
            (std::vector<std::int32_t>{7, -1}));
  EXPECT_EQ((read<std::int32_t, std::int32_t>(FileDtype::I32, {7})),
            (std::vector<std::int32_t>{7}));
  EXPECT_TRUE(says(
      complaint([] { read<std::int32_t, std::int64_t>(FileDtype::I64, {std::int64_t{1} << 40}); }),
      "more than 32 bits"));
}

TEST(FileTensor, WrongDtypesAndRangesAreRejected) {
  EXPECT_TRUE(says(complaint([] { read<float, std::int32_t>(FileDtype::I32, {1}); }), "dtype I32"));
  EXPECT_TRUE(
      says(complaint([] { read<std::int32_t, float>(FileDtype::F32, {1}); }), "I32 or I64"));
  const std::vector<float> values(4);
  std::vector<float> out(3);
  EXPECT_THROW(read_elements(view(FileDtype::F32, values), 2, out), base::InternalError);
  EXPECT_THROW(read_elements(view(FileDtype::F32, values), -1, out), base::InternalError);
}

TEST(FileTensor, Bf16RoundsToNearestEven) {
  EXPECT_EQ(to_bf16(1.0f), 0x3f80);
  EXPECT_EQ(to_bf16(1.0f + 0x1p-8f), 0x3f80);
  EXPECT_EQ(to_bf16(1.0f + 0x1p-8f + 0x1p-20f), 0x3f81);
  EXPECT_EQ(to_bf16(1.0f + 0x3p-8f), 0x3f82);
  EXPECT_EQ(to_bf16(std::numeric_limits<float>::infinity()), 0x7f80);
  EXPECT_EQ(to_bf16(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_EQ(to_bf16(std::numeric_limits<float>::quiet_NaN()) & 0x7fc0, 0x7fc0);
}

}  // namespace file_tensor_test
}  // namespace weft::checkpoint
