// Moving rows: gathered by index, summed by index, copied in blocks.
#include <cstring>

#include "weft/kernels/cpu/arguments.h"
#include "weft/kernels/cpu/work_cut.h"
#include "weft/kernels/kernels.h"

namespace weft::kernels {

using namespace cpu;

namespace {

// Rows of bytes: a matrix, or a vector as a matrix of one column.
struct ByteRows {
  std::byte* data;
  std::int64_t rows, bytes, stride;

  std::byte* row(std::int64_t i) const { return data + i * stride; }
};

ByteRows byte_rows(Stream& stream, std::string_view name, const Tensor& x) {
  const int rank = x.shape().rank();
  CHECK(rank == 1 || rank == 2,
        "{} is {}, should be a matrix or a vector",
        name,
        x.shape().print());
  const std::int64_t size = tensor::size_of(x.dtype());
  const std::int64_t columns = rank == 2 ? x.dim(1) : 1;
  return {bytes_of(stream, x), x.dim(0), columns * size, x.row_stride() * size};
}

// y and x with rows of the same kind.
void check_same_rows(const Tensor& y, const Tensor& x) {
  check_dtype("y", y, x.dtype());
  CHECK(y.shape().rank() == x.shape().rank() && (x.shape().rank() != 2 || y.dim(1) == x.dim(1)),
        "rows of y {} and x {}",
        y.shape().print(),
        x.shape().print());
}

std::int64_t check_index(std::int32_t i, std::int64_t rows) {
  CHECK(i >= 0 && i < rows, "row {} of {}", i, rows);
  return i;
}

template <typename T>
void add_row(float* sum, const T* x, std::int64_t n) {
#pragma omp simd
  for (std::int64_t c = 0; c < n; ++c) sum[c] += load(x[c]);
}

template <typename T>
void store_row(T* y, const float* sum, std::int64_t n) {
#pragma omp simd
  for (std::int64_t c = 0; c < n; ++c) store(y[c], sum[c]);
}

// The sum of the rows of x named by `index`, in short runs of columns that stay in registers and
// the first cache.
template <typename T>
void sum_named_rows(T* y, const Matrix<T>& x, const std::int32_t* index, std::int64_t k) {
  constexpr std::int64_t kRun = 256;
  float sum[kRun];
  for (std::int64_t begin = 0; begin < x.columns; begin += kRun) {
    const std::int64_t n = std::min(kRun, x.columns - begin);
    std::fill_n(sum, n, 0.0f);
    for (std::int64_t j = 0; j < k; ++j) {
      add_row(sum, x.row(check_index(index[j], x.rows)) + begin, n);
    }
    store_row(y + begin, sum, n);
  }
}

}  // namespace

void gather_rows(Stream& stream, Tensor y, Tensor x, Tensor index) {
  check_same_rows(y, x);
  check_vector("index", index, y.dim(0));
  const ByteRows to = byte_rows(stream, "y", y), from = byte_rows(stream, "x", x);
  const std::int32_t* source = index.data<std::int32_t>(stream);
  stream.enqueue("gather_rows", WorkClass::Memory, [=](Workers& workers) {
    parallel(workers, cut_rows(to.rows, to.bytes / 4), [&](Range rows) {
      for (std::int64_t r = rows.begin; r < rows.end; ++r) {
        std::copy_n(from.row(check_index(source[r], from.rows)), to.bytes, to.row(r));
      }
    });
  });
}

void sum_rows(Stream& stream, Tensor y, Tensor x, Tensor index) {
  const auto [tokens, k] = matrix_shape("index", index);
  check_matrix("y", y, tokens, matrix_shape("x", x).columns);
  check_dtype("y", y, x.dtype());
  with_float(x.dtype(), [&]<typename T>(As<T>) {
    const Matrix<T> ys = matrix<T>(stream, y), xs = matrix<T>(stream, x);
    const Matrix<std::int32_t> sources = matrix<std::int32_t>(stream, index);
    stream.enqueue("sum_rows", WorkClass::Memory, [=](Workers& workers) {
      parallel(workers, cut_rows(ys.rows, ys.columns * sources.columns), [&](Range rows) {
        for (std::int64_t t = rows.begin; t < rows.end; ++t) {
          sum_named_rows(ys.row(t), xs, sources.row(t), sources.columns);
        }
      });
    });
  });
}

void copy_rows(Stream& stream, Tensor y, Tensor x, std::span<const RowBlock> blocks) {
  check_same_rows(y, x);
  const ByteRows to = byte_rows(stream, "y", y), from = byte_rows(stream, "x", x);
  std::vector<RowBlock> pieces;
  for (const RowBlock& block : blocks) {
    CHECK(block.rows >= 0 && block.from >= 0 && block.to >= 0 &&
              block.from <= from.rows - block.rows && block.to <= to.rows - block.rows,
          "block of {} rows from {} of {} to {} of {}",
          block.rows,
          block.from,
          from.rows,
          block.to,
          to.rows);
    const Cut cut = cut_rows(block.rows, to.bytes / 4);
    for (std::int64_t i = 0; i < cut.count(); ++i) {
      pieces.push_back({block.from + cut[i].begin, block.to + cut[i].begin, cut[i].size()});
    }
  }
  stream.enqueue("copy_rows", WorkClass::Memory, [=](Workers& workers) {
    workers.parallel(static_cast<std::int64_t>(pieces.size()), [&](std::int64_t i) {
      const RowBlock& piece = pieces[static_cast<std::size_t>(i)];
      if (to.stride == to.bytes && from.stride == from.bytes) {
        std::copy_n(from.row(piece.from), piece.rows * to.bytes, to.row(piece.to));
        return;
      }
      for (std::int64_t r = 0; r < piece.rows; ++r) {
        std::copy_n(from.row(piece.from + r), to.bytes, to.row(piece.to + r));
      }
    });
  });
}

}  // namespace weft::kernels
