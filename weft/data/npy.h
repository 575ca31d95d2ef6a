// The head of a .npy file (NumPy's array format 1.0 to 3.0). No number of it is trusted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "weft/data/integer_type.h"

namespace weft::data {

// What parse_npy needs of a file that is longer.
inline constexpr std::size_t kNpyHeadBytes = std::size_t{1} << 16;

// Integers in row-major order that fill the file from byte `begin` to its end.
struct NpyArray {
  IntegerType type = IntegerType::I32;
  int dimensions = 1;         // 1 or 2
  std::uint64_t rows = 0;     // 1 of an array with one dimension
  std::uint64_t columns = 0;  // rows * columns does not overflow
  std::uint64_t begin = 0;
};

// `head` is the beginning of a file of `file_bytes`, or all of it. ConfigError names `name`, what
// is wrong and how NumPy writes it right.
NpyArray parse_npy(std::span<const std::byte> head,
                   std::uint64_t file_bytes,
                   const std::string& name);

}  // namespace weft::data
