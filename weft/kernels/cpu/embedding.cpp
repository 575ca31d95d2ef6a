#include <algorithm>
#include <cstring>

#include "weft/kernels/cpu/arguments.h"
#include "weft/kernels/cpu/gemm/work_cut.h"
#include "weft/kernels/cpu/operations.h"

namespace weft::kernels::cpu {

namespace {

constexpr std::int64_t kColumnsPerTask = 64;  // four cache lines of a gradient row

// True if some rank has a row for the token; otherwise raises a fault.
bool is_token(std::int32_t id, std::int64_t rows, const OtherIds& others, const Faults& faults) {
  const std::int64_t vocabulary = others.before + rows + others.behind;
  if (id >= 0 && id < vocabulary) return true;
  faults.raise(FaultCode::TokenOutOfRange, {id, vocabulary});
  return false;
}

// This rank's row of a token; nullptr: another rank's.
template <typename T>
T* row_of(const Matrix<T>& table, std::int32_t id, const OtherIds& others) {
  const std::int64_t own = id - others.before;
  return own >= 0 && own < table.rows ? table.row(own) : nullptr;
}

void clear(const Matrix<float>& sums, Range columns) {
  for (std::int64_t row = 0; row < sums.rows; ++row) {
    std::fill_n(sums.row(row) + columns.begin, columns.size(), 0.0f);
  }
}

}  // namespace

void embedding_forward(Stream& stream, Tensor x, Tensor table, Tensor ids, const OtherIds& others) {
  with_float(x.dtype(), [&]<typename T>(As<T>) {
    const Matrix<T> xs = matrix<T>(stream, x), rows_of = matrix<T>(stream, table);
    const std::int32_t* tokens = data<std::int32_t>(stream, ids);
    const Faults faults(stream);
    enqueue(stream, "embedding_forward", WorkClass::Memory, [=](Workers& workers) {
      parallel(workers, cut_rows(xs.rows, xs.columns), [&](Range rows) {
        for (std::int64_t t = rows.begin; t < rows.end; ++t) {
          if (!is_token(tokens[t], rows_of.rows, others, faults)) return;
          if (const T* row = row_of(rows_of, tokens[t], others)) {
            std::copy_n(row, xs.columns, xs.row(t));
          } else {
            std::fill_n(xs.row(t), xs.columns, T(0.0f));
          }
        }
      });
    });
  });
}

// A task owns a block of columns and adds the rows in order: repeated tokens are always summed in
// one order.
void embedding_wgrad(Stream& stream,
                     Tensor dtable,
                     Tensor dx,
                     Tensor ids,
                     Write write,
                     const OtherIds& others) {
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
          if (!is_token(tokens[t], sums.rows, others, faults)) return;
          float* to = row_of(sums, tokens[t], others);
          if (to == nullptr) continue;
          const T* from = dxs.row(t);
#pragma omp simd
          for (std::int64_t c = columns.begin; c < columns.end; ++c) to[c] += load(from[c]);
        }
      });
    });
  });
}

}  // namespace weft::kernels::cpu
