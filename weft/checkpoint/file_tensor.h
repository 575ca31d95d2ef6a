// A tensor as it lies in a file: its dtype, shape and where its bytes come from, and the conversion
// of any range of its elements to the types the engine computes with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
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

// Fills `out` with the bytes from `begin` on.
using ReadBytes = std::function<void(std::uint64_t begin, std::span<std::byte> out)>;

// Of memory, which must outlive it.
ReadBytes bytes_of(std::span<const std::byte> memory);

struct TensorView {
  std::string where;  // "'model.safetensors': tensor 'lm_head.weight'", for errors
  FileDtype dtype;
  Shape shape;
  std::uint64_t bytes;  // in all
  ReadBytes read;

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

// The bytes of F32 or BF16 that hold the values; `narrow` holds them where they are not the
// values' own.
std::string_view stored(std::span<const float> values,
                        FileDtype dtype,
                        std::vector<std::uint16_t>& narrow);

}  // namespace weft::checkpoint
