#include <algorithm>
#include <cstring>

#include "weft/kernels/cpu/arguments.h"
#include "weft/kernels/cpu/work_cut.h"
#include "weft/kernels/kernels.h"

namespace weft::kernels {

using namespace cpu;

namespace {

constexpr std::int64_t kColumnsPerTask = 64;  // four cache lines of a row of gradients

std::int64_t check_id(std::int32_t id, std::int64_t vocabulary) {
  CHECK(id >= 0 && id < vocabulary, "token {} of a vocabulary of {}", id, vocabulary);
  return id;
}

void check_embedding(const Tensor& x, const Tensor& table, const Tensor& ids) {
  const auto [rows, width] = matrix_shape("x", x);
  CHECK(matrix_shape("table", table).columns == width,
        "rows of {} and a table {}",
        width,
        table.shape().print());
  check_vector("ids", ids, rows);
  check_dtype("ids", ids, DType::I32);
}

}  // namespace

void embedding_forward(Stream& stream, Tensor x, Tensor table, Tensor ids) {
  check_embedding(x, table, ids);
  check_dtype("table", table, x.dtype());
  with_float(x.dtype(), [&]<typename T>(As<T>) {
    const Matrix<T> xs = matrix<T>(stream, x), rows_of = matrix<T>(stream, table);
    const std::int32_t* tokens = ids.data<std::int32_t>(stream);
    stream.enqueue("embedding_forward", WorkClass::Memory, [=](Workers& workers) {
      parallel(workers, cut_rows(xs.rows, xs.columns), [&](Range rows) {
        for (std::int64_t t = rows.begin; t < rows.end; ++t) {
          const T* row = rows_of.row(check_id(tokens[t], rows_of.rows));
          std::copy_n(row, xs.columns, xs.row(t));
        }
      });
    });
  });
}

// A task owns a block of columns and adds the rows in their order, so that a token that occurs
// twice is summed the same way every time.
void embedding_wgrad(Stream& stream, Tensor dtable, Tensor dx, Tensor ids) {
  check_embedding(dx, dtable, ids);
  check_dtype("dtable", dtable, DType::F32);
  with_float(dx.dtype(), [&]<typename T>(As<T>) {
    const Matrix<T> dxs = matrix<T>(stream, dx);
    const Matrix<float> sums = matrix<float>(stream, dtable);
    const std::int32_t* tokens = ids.data<std::int32_t>(stream);
    stream.enqueue("embedding_wgrad", WorkClass::Memory, [=](Workers& workers) {
      parallel(workers, Cut{sums.columns, kColumnsPerTask}, [&](Range columns) {
        for (std::int64_t t = 0; t < dxs.rows; ++t) {
          if (tokens[t] < 0) continue;
          float* to = sums.row(check_id(tokens[t], sums.rows));
          const T* from = dxs.row(t);
#pragma omp simd
          for (std::int64_t c = columns.begin; c < columns.end; ++c) to[c] += load(from[c]);
        }
      });
    });
  });
}

}  // namespace weft::kernels
