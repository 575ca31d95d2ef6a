// Tensor in a file: dtype, shape and byte source. Converts any range of its elements to the
// engine's types.
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

// Name in the format ("BF16"), and its inverse.
std::string_view word(FileDtype dtype);
std::optional<FileDtype> dtype_of(std::string_view word);
std::size_t element_bytes(FileDtype dtype);

using Shape = std::vector<std::int64_t>;

// Fills `out` with the bytes from `begin` on.
using ReadBytes = std::function<void(std::uint64_t begin, std::span<std::byte> out)>;

// Reads from memory, which must outlive it.
ReadBytes bytes_of(std::span<const std::byte> memory);

struct TensorView {
  std::string where;  // "'model.safetensors': tensor 'lm_head.weight'", for errors
  FileDtype dtype;
  Shape shape;
  std::uint64_t bytes;  // total
  ReadBytes read;

  std::int64_t elements() const;
};

// Reads the elements [begin, begin + out.size()). Floating point from F32, F64, BF16 and F16;
// tokens from I32 and I64 (values of 32 bits). ConfigError for another dtype. The range must be
// valid.
void read_elements(const TensorView& tensor, std::int64_t begin, std::span<float> out);
void read_elements(const TensorView& tensor, std::int64_t begin, std::span<double> out);
void read_elements(const TensorView& tensor, std::int64_t begin, std::span<std::int32_t> out);

// True if read_elements converts it to floating point.
bool is_floating(FileDtype dtype);

// Rounds to nearest even; keeps NaN.
std::uint16_t to_bf16(float value);

// Bytes of the values as F32 or BF16; `narrow` is the buffer for BF16.
std::string_view stored(std::span<const float> values,
                        FileDtype dtype,
                        std::vector<std::uint16_t>& narrow);

}  // namespace weft::checkpoint
