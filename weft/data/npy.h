// Header of a .npy file (NumPy's array format 1.0 to 3.0). All its numbers are checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "weft/data/integer_type.h"

namespace weft::data {

// Bytes of a longer file that parse_npy needs.
inline constexpr std::size_t kNpyHeadBytes = std::size_t{1} << 16;

// Integers in row-major order, from byte `begin` to the end of the file.
struct NpyArray {
  IntegerType type = IntegerType::I32;
  int dimensions = 1;         // 1 or 2
  std::uint64_t rows = 0;     // 1: a one-dimensional array
  std::uint64_t columns = 0;  // rows * columns does not overflow
  std::uint64_t begin = 0;
};

// `head`: beginning of a file of `file_bytes`, or all of it. Throws ConfigError with `name`, the
// error and the way to write the file with NumPy.
NpyArray parse_npy(std::span<const std::byte> head,
                   std::uint64_t file_bytes,
                   const std::string& name);

}  // namespace weft::data
