// SwiGLU, y = silu(gate) * up, optionally times a weight per row.
#include "weft/kernels/cpu/arguments.h"
#include "weft/kernels/cpu/gemm/work_cut.h"
#include "weft/kernels/cpu/operations.h"
#include "weft/kernels/cpu/vector_math.h"

namespace weft::kernels::cpu {

namespace {

template <typename T>
void forward_row(T* y, const T* gate, const T* up, std::int64_t n, float weight) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const float g = load(gate[i]);
    store(y[i], g * sigmoid_f32(g) * load(up[i]) * weight);
  }
}

// Writes the gradient of (gate | up) and returns the weight's gradient.
template <typename T>
float dgrad_row(T* dh, const T* dy, const T* h, std::int64_t n, float weight) {
  const T* up = h + n;
  T* dup = dh + n;
  float dweight = 0;
#pragma omp simd reduction(+ : dweight)
  for (std::int64_t i = 0; i < n; ++i) {
    const float g = load(h[i]), u = load(up[i]), d = load(dy[i]);
    const float s = sigmoid_f32(g);
    const float silu = g * s;
    dweight += d * silu * u;
    store(dh[i], d * weight * u * (s + silu * (1.0f - s)));
    store(dup[i], d * weight * silu);
  }
  return dweight;
}

// `p`: the weights; nullptr: none.
template <typename T>
void forward(Stream& stream, std::string_view name, Matrix<T> y, Matrix<T> h, const float* p) {
  enqueue(stream, name, WorkClass::Memory, [=](Workers& workers) {
    parallel(workers, cut_rows(y.rows, y.columns), [&](Range rows) {
      for (std::int64_t t = rows.begin; t < rows.end; ++t) {
        const float weight = p == nullptr ? 1.0f : p[t];
        forward_row(y.row(t), h.row(t), h.row(t) + y.columns, y.columns, weight);
      }
    });
  });
}

}  // namespace

void swiglu_forward(Stream& stream, Tensor y, Tensor h) {
  with_float(y.dtype(), [&]<typename T>(As<T>) {
    forward(stream, "swiglu_forward", matrix<T>(stream, y), matrix<T>(stream, h), nullptr);
  });
}

void weighted_swiglu_forward(Stream& stream, Tensor y, Tensor h, Tensor p) {
  with_float(y.dtype(), [&]<typename T>(As<T>) {
    const float* ps = data<float>(stream, p);
    forward(stream, "weighted_swiglu_forward", matrix<T>(stream, y), matrix<T>(stream, h), ps);
  });
}

void swiglu_dgrad(Stream& stream, Tensor dh, Tensor dy, Tensor h) {
  with_float(h.dtype(), [&]<typename T>(As<T>) {
    const Matrix<T> dhs = matrix<T>(stream, dh), dys = matrix<T>(stream, dy);
    const Matrix<T> hs = matrix<T>(stream, h);
    enqueue(stream, "swiglu_dgrad", WorkClass::Memory, [=](Workers& workers) {
      parallel(workers, cut_rows(dys.rows, dys.columns), [&](Range rows) {
        for (std::int64_t t = rows.begin; t < rows.end; ++t) {
          dgrad_row(dhs.row(t), dys.row(t), hs.row(t), dys.columns, 1.0f);
        }
      });
    });
  });
}

void weighted_swiglu_dgrad(Stream& stream, Tensor dh, Tensor dp, Tensor dy, Tensor h, Tensor p) {
  with_float(h.dtype(), [&]<typename T>(As<T>) {
    const Matrix<T> dhs = matrix<T>(stream, dh), dys = matrix<T>(stream, dy);
    const Matrix<T> hs = matrix<T>(stream, h);
    const float* ps = data<float>(stream, p);
    float* dps = data<float>(stream, dp);
    enqueue(stream, "weighted_swiglu_dgrad", WorkClass::Memory, [=](Workers& workers) {
      parallel(workers, cut_rows(dys.rows, dys.columns), [&](Range rows) {
        for (std::int64_t t = rows.begin; t < rows.end; ++t) {
          dps[t] = dgrad_row(dhs.row(t), dys.row(t), hs.row(t), dys.columns, ps[t]);
        }
      });
    });
  });
}

}  // namespace weft::kernels::cpu
