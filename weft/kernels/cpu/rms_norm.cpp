// RMSNorm over groups of N columns: y = x * rstd * w.
#include "weft/kernels/cpu/norm_rows.h"
#include "weft/kernels/cpu/operations.h"

namespace weft::kernels::cpu {

namespace {

template <typename T>
void forward_group(T* y, const T* x, const T* w, std::int64_t n, float rstd) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) store(y[i], load(x[i]) * rstd * load(w[i]));
}

template <typename T>
struct GradientGroup {
  T* dx;
  const T *dy, *x, *w;
  const T* residual;  // nullptr: none
};
// dx = rstd * (w dy - x rstd^2 mean(w dy x)) + residual.
template <typename T>
void dgrad_group(const GradientGroup<T>& group, std::int64_t n, float rstd) {
  const auto [dx, dy, x, w, residual] = group;
  float dot = 0;
#pragma omp simd reduction(+ : dot)
  for (std::int64_t i = 0; i < n; ++i) dot += load(w[i]) * load(dy[i]) * load(x[i]);
  const float pull = dot / static_cast<float>(n) * rstd * rstd;
  const auto write = [&](const auto& added) {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) {
      store(dx[i], rstd * (load(w[i]) * load(dy[i]) - load(x[i]) * pull) + added(i));
    }
  };
  if (residual == nullptr) {
    write([](std::int64_t) { return 0.0f; });
  } else {
    write([residual](std::int64_t i) { return load(residual[i]); });
  }
}

template <typename T>
void wgrad_group(float* dw, const T* dy, const T* x, std::int64_t n, float rstd) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) dw[i] += load(dy[i]) * load(x[i]) * rstd;
}

}  // namespace

void rms_norm_forward(Stream& stream, Tensor y, Tensor rstd, Tensor x, Tensor w, float epsilon) {
  const std::int64_t n = w.dim(0);
  with_float(x.dtype(), [&]<typename T>(As<T>) {
    const Matrix<T> xs = matrix<T>(stream, x), ys = matrix<T>(stream, y);
    const Matrix<float> rstds = matrix<float>(stream, rstd);
    const T* ws = data<T>(stream, w);
    enqueue(stream, "rms_norm_forward", WorkClass::Memory, [=](Workers& workers) {
      parallel(workers, cut_rows(xs.rows, xs.columns), [&](Range rows) {
        for (std::int64_t t = rows.begin; t < rows.end; ++t) {
          for (std::int64_t g = 0; g < rstds.columns; ++g) {
            const float r = reciprocal_rms(xs.row(t) + g * n, n, epsilon);
            rstds.row(t)[g] = r;
            forward_group(ys.row(t) + g * n, xs.row(t) + g * n, ws, n, r);
          }
        }
      });
    });
  });
}

void rms_norm_dgrad(Stream& stream,
                    Tensor dx,
                    Tensor dy,
                    Tensor x,
                    Tensor w,
                    Tensor rstd,
                    Tensor residual) {
  const std::int64_t n = w.dim(0);
  with_float(x.dtype(), [&]<typename T>(As<T>) {
    const Matrix<T> xs = matrix<T>(stream, x), dys = matrix<T>(stream, dy);
    const Matrix<T> dxs = matrix<T>(stream, dx);
    const Matrix<T> added = residual.defined() ? matrix<T>(stream, residual) : Matrix<T>{};
    const Matrix<float> rstds = matrix<float>(stream, rstd);
    const T* ws = data<T>(stream, w);
    enqueue(stream, "rms_norm_dgrad", WorkClass::Memory, [=](Workers& workers) {
      parallel(workers, cut_rows(xs.rows, xs.columns), [&](Range rows) {
        for (std::int64_t t = rows.begin; t < rows.end; ++t) {
          for (std::int64_t g = 0; g < rstds.columns; ++g) {
            const std::int64_t at = g * n;
            const T* past = added.data == nullptr ? nullptr : added.row(t) + at;
            dgrad_group<T>({dxs.row(t) + at, dys.row(t) + at, xs.row(t) + at, ws, past},
                           n,
                           rstds.row(t)[g]);
          }
        }
      });
    });
  });
}

// Each range of rows is summed on its own; the ranges are added in order.
void rms_norm_wgrad(Stream& stream, Tensor dw, Tensor dy, Tensor x, Tensor rstd, Write write) {
  const std::int64_t n = dw.dim(0);
  with_float(x.dtype(), [&]<typename T>(As<T>) {
    const Matrix<T> xs = matrix<T>(stream, x), dys = matrix<T>(stream, dy);
    const Matrix<float> rstds = matrix<float>(stream, rstd);
    float* dws = data<float>(stream, dw);
    const Cut cut = partial_sums(xs.rows);
    enqueue(stream, "rms_norm_wgrad", WorkClass::Memory, [=](Workers& workers) {
      std::vector<float> parts(static_cast<std::size_t>(cut.count() * n));
      workers.parallel(cut.count(), [&](std::int64_t i) {
        for (std::int64_t t = cut[i].begin; t < cut[i].end; ++t) {
          for (std::int64_t g = 0; g < rstds.columns; ++g) {
            const float r = rstds.row(t)[g];
            wgrad_group(parts.data() + i * n, dys.row(t) + g * n, xs.row(t) + g * n, n, r);
          }
        }
      });
      if (write == Write::Assign) std::fill_n(dws, n, 0.0f);
      for (std::int64_t i = 0; i < cut.count(); ++i) {
        for (std::int64_t c = 0; c < n; ++c) dws[c] += parts[static_cast<std::size_t>(i * n + c)];
      }
    });
  });
}

}  // namespace weft::kernels::cpu
