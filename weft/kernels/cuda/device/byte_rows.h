// Rows as bytes of any dtype, moved in the widest words that fit them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "weft/kernels/cuda/device/arguments.h"

namespace weft::kernels::cuda {

// Matrix, or a vector as a matrix of one column.
struct ByteRows {
  std::byte* data = nullptr;
  std::int64_t rows = 0, bytes = 0, stride = 0;

  template <typename Word>
  __device__ Word* row(std::int64_t i) const {
    return reinterpret_cast<Word*>(data + i * stride);
  }

  template <typename Word>
  __host__ __device__ std::int64_t words() const {
    return bytes / std::int64_t(sizeof(Word));
  }

  bool in_words_of(std::int64_t size) const {
    return reinterpret_cast<std::uintptr_t>(data) % std::uintptr_t(size) == 0 &&
           bytes % size == 0 && stride % size == 0;
  }
};

inline ByteRows byte_rows(Stream& stream, const Tensor& x) {
  const std::int64_t size = tensor::size_of(x.dtype());
  const std::int64_t columns = x.shape().rank() == 2 ? x.dim(1) : 1;
  return {bytes_of(stream, x), x.dim(0), columns * size, x.row_stride() * size};
}

// Calls body(As<Word>) with the widest word that both can be moved in.
template <typename Body>
void with_word(const ByteRows& to, const ByteRows& from, Body&& body) {
  const auto fits = [&](std::int64_t size) {
    return to.in_words_of(size) && from.in_words_of(size);
  };
  if (fits(16)) return body(As<uint4>{});
  if (fits(8)) return body(As<uint2>{});
  if (fits(4)) return body(As<std::uint32_t>{});
  body(As<std::uint16_t>{});
}

// Grid for short rows: a block has several. threadIdx.x goes over the columns of a row (or its
// words), threadIdx.y over the rows of a block. A thread takes `at_once` rows at a time.
inline constexpr unsigned kRowThreads = 256;
inline Grid short_rows_grid(std::int64_t rows, std::int64_t columns, int at_once = 1) {
  unsigned across = 1;
  while (across < kRowThreads && across < columns) across *= 2;
  const unsigned down = kRowThreads / across;
  return {blocks_for(rows, int(down) * at_once), dim3(across, down)};
}

// Rows of a thread in such a grid: for (r = first_row(); r < rows; r += row_step()).
__device__ inline std::int64_t first_row() {
  return std::int64_t(blockIdx.x) * blockDim.y + threadIdx.y;
}
__device__ inline std::int64_t row_step() { return std::int64_t(gridDim.x) * blockDim.y; }

template <typename Word>
__device__ void copy_row(const ByteRows& to,
                         std::int64_t to_row,
                         const ByteRows& from,
                         std::int64_t from_row) {
  Word* y = to.row<Word>(to_row);
  const Word* x = from.row<Word>(from_row);
  for (std::int64_t w = threadIdx.x; w < to.words<Word>(); w += blockDim.x) y[w] = x[w];
}

}  // namespace weft::kernels::cuda
