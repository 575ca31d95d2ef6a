#include <algorithm>
#include <cstring>

#include "weft/kernels/cpu/arguments.h"
#include "weft/kernels/cpu/operations.h"
#include "weft/kernels/cpu/work_cut.h"

namespace weft::kernels::cpu {

namespace {

constexpr std::int64_t kColumnsPerTask = 64;  // four cache lines of a row of gradients

// Whether there is a row for a token; a fault where there is none.
bool has_row(std::int32_t id, std::int64_t vocabulary, const Faults& faults) {
  if (id >= 0 && id < vocabulary) return true;
  faults.raise(FaultCode::TokenOutOfRange, {id, vocabulary});
  return false;
}

void clear(const Matrix<float>& sums, Range columns) {
  for (std::int64_t row = 0; row < sums.rows; ++row) {
    std::fill_n(sums.row(row) + columns.begin, columns.size(), 0.0f);
  }
}

}  // namespace

void embedding_forward(Stream& stream, Tensor x, Tensor table, Tensor ids) {
  with_float(x.dtype(), [&]<typename T>(As<T>) {
    const Matrix<T> xs = matrix<T>(stream, x), rows_of = matrix<T>(stream, table);
    const std::int32_t* tokens = data<std::int32_t>(stream, ids);
    const Faults faults(stream);
    enqueue(stream, "embedding_forward", WorkClass::Memory, [=](Workers& workers) {
      parallel(workers, cut_rows(xs.rows, xs.columns), [&](Range rows) {
        for (std::int64_t t = rows.begin; t < rows.end; ++t) {
          if (!has_row(tokens[t], rows_of.rows, faults)) return;
          std::copy_n(rows_of.row(tokens[t]), xs.columns, xs.row(t));
        }
      });
    });
  });
}

// A task owns a block of columns and adds the rows in their order, so that a token that occurs
// twice is summed the same way every time.
void embedding_wgrad(Stream& stream, Tensor dtable, Tensor dx, Tensor ids, Write write) {
  with_float(dx.dtype(), [&]<typename T>(As<T>) {
    const Matrix<T> dxs = matrix<T>(stream, dx);
    const Matrix<float> sums = matrix<float>(stream, dtable);
    const std::int32_t* tokens = data<std::int32_t>(stream, ids);
    const Faults faults(stream);
    enqueue(stream, "embedding_wgrad", WorkClass::Memory, [=](Workers& workers) {
      parallel(workers, Cut{sums.columns, kColumnsPerTask}, [&](Range columns) {
        if (write == Write::Assign) clear(sums, columns);
        for (std::int64_t t = 0; t < dxs.rows; ++t) {
          if (tokens[t] < 0) continue;
          if (!has_row(tokens[t], sums.rows, faults)) return;
          float* to = sums.row(tokens[t]);
          const T* from = dxs.row(t);
#pragma omp simd
          for (std::int64_t c = columns.begin; c < columns.end; ++c) to[c] += load(from[c]);
        }
      });
    });
  });
}

}  // namespace weft::kernels::cpu
