// A tensor as it lies in a file: its dtype, shape and bytes, and the conversion of any range of its
// elements to the types the engine computes with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weft::checkpoint {

enum class FileDtype {
  Bool,
  U8,
  I8,
  F8E5M2,
  F8E4M3,
  U16,
  I16,
  F16,
  BF16,
  U32,
  I32,
  F32,
  U64,
  I64,
  F64,
};

// The word of the format ("BF16"), and back.
std::string_view word(FileDtype dtype);
std::optional<FileDtype> dtype_of(std::string_view word);
std::size_t element_bytes(FileDtype dtype);

using Shape = std::vector<std::int64_t>;

// A view; the file's mapping must outlive it.
struct TensorView {
  std::string where;  // "'model.safetensors': tensor 'lm_head.weight'", for errors
  FileDtype dtype;
  Shape shape;
  std::span<const std::byte> bytes;  // any alignment

  std::int64_t elements() const;
};

// Elements [begin, begin + out.size()). Floating point from F32, F64, BF16 and F16, tokens from I32
// and I64 (values that fit 32 bits); ConfigError for another dtype. The range must lie inside.
void read_elements(const TensorView& tensor, std::int64_t begin, std::span<float> out);
void read_elements(const TensorView& tensor, std::int64_t begin, std::span<double> out);
void read_elements(const TensorView& tensor, std::int64_t begin, std::span<std::int32_t> out);

// Whether read_elements gives floating point from it.
bool is_floating(FileDtype dtype);

// Rounds to nearest, ties to even; NaN stays NaN.
std::uint16_t to_bf16(float value);

}  // namespace weft::checkpoint
