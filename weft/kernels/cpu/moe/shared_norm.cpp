// RMSNorm over columns of several ranks: a rank's part of each row's sum, and the norm itself from
// the full sums.
#include <cmath>

#include "weft/kernels/cpu/arguments.h"
#include "weft/kernels/cpu/gemm/work_cut.h"
#include "weft/kernels/cpu/operations.h"

namespace weft::kernels::cpu {

namespace {

template <typename T>
float weighted_dot(const T* a, const T* b, const T* w, std::int64_t n) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) sum += load(w[i]) * load(a[i]) * load(b[i]);
  return sum;
}

// Calls body(t) for every row of a matrix like `x`.
template <typename T, typename Body>
void for_rows(Stream& stream, std::string_view name, const Matrix<T>& x, const Body& body) {
  enqueue(stream, name, WorkClass::Memory, [=](Workers& workers) {
    parallel(workers, cut_rows(x.rows, x.columns), [&](Range rows) {
      for (std::int64_t t = rows.begin; t < rows.end; ++t) body(t);
    });
  });
}

}  // namespace

void row_dots(Stream& stream, Tensor dots, Tensor a, Tensor b, Tensor w) {
  with_float(a.dtype(), [&]<typename T>(As<T>) {
    const Matrix<T> as = matrix<T>(stream, a), bs = matrix<T>(stream, b);
    const T* ws = w.defined() ? data<T>(stream, w) : nullptr;
    float* sums = data<float>(stream, dots);
    for_rows(stream, "row_dots", as, [=](std::int64_t t) {
      sums[t] = ws == nullptr ? dot(as.row(t), bs.row(t), as.columns)
                              : weighted_dot(as.row(t), bs.row(t), ws, as.columns);
    });
  });
}

void shared_norm_forward(Stream& stream,
                         Tensor y,
                         Tensor rstd,
                         Tensor x,
                         Tensor w,
                         Tensor squares,
                         const SharedNorm& norm) {
  with_float(x.dtype(), [&]<typename T>(As<T>) {
    const Matrix<T> xs = matrix<T>(stream, x), ys = matrix<T>(stream, y);
    const T* ws = data<T>(stream, w);
    const float* sums = data<float>(stream, squares);
    float* rstds = data<float>(stream, rstd);
    for_rows(stream, "shared_norm_forward", xs, [=](std::int64_t t) {
      const float r = 1.0f / std::sqrt(sums[t] / static_cast<float>(norm.width) + norm.epsilon);
      const T* from = xs.row(t);
      T* to = ys.row(t);
      rstds[t] = r;
#pragma omp simd
      for (std::int64_t i = 0; i < xs.columns; ++i) store(to[i], load(from[i]) * r * load(ws[i]));
    });
  });
}

// dx = rstd * (w dy - x rstd^2 mean(w dy x)).
void shared_norm_dgrad(Stream& stream,
                       Tensor dx,
                       Tensor dy,
                       Tensor x,
                       Tensor w,
                       Tensor rstd,
                       Tensor dots,
                       const SharedNorm& norm) {
  with_float(x.dtype(), [&]<typename T>(As<T>) {
    const Matrix<T> xs = matrix<T>(stream, x), dys = matrix<T>(stream, dy);
    const Matrix<T> dxs = matrix<T>(stream, dx);
    const T* ws = data<T>(stream, w);
    const float *sums = data<float>(stream, dots), *rstds = data<float>(stream, rstd);
    for_rows(stream, "shared_norm_dgrad", xs, [=](std::int64_t t) {
      const float r = rstds[t], pull = sums[t] / static_cast<float>(norm.width) * r * r;
      const T *gradient = dys.row(t), *from = xs.row(t);
      T* to = dxs.row(t);
#pragma omp simd
      for (std::int64_t i = 0; i < xs.columns; ++i) {
        store(to[i], r * (load(ws[i]) * load(gradient[i]) - load(from[i]) * pull));
      }
    });
  });
}

}  // namespace weft::kernels::cpu
