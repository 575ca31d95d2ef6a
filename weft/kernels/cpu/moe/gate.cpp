// Gate per row: y = x * sigmoid(g).
#include "weft/kernels/cpu/arguments.h"
#include "weft/kernels/cpu/gemm/work_cut.h"
#include "weft/kernels/cpu/operations.h"
#include "weft/kernels/cpu/vector_math.h"

namespace weft::kernels::cpu {

namespace {

template <typename T>
void scale_row(T* y, const T* x, std::int64_t n, float factor) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) store(y[i], load(x[i]) * factor);
}

}  // namespace

void gate_forward(Stream& stream, Tensor y, Tensor x, Tensor g) {
  with_float(y.dtype(), [&]<typename T>(As<T>) {
    const Matrix<T> ys = matrix<T>(stream, y), xs = matrix<T>(stream, x);
    const float* gs = data<float>(stream, g);
    enqueue(stream, "gate_forward", WorkClass::Memory, [=](Workers& workers) {
      parallel(workers, cut_rows(ys.rows, ys.columns), [&](Range rows) {
        for (std::int64_t t = rows.begin; t < rows.end; ++t) {
          scale_row(ys.row(t), xs.row(t), ys.columns, sigmoid_f32(gs[t]));
        }
      });
    });
  });
}

void gate_dgrad(Stream& stream, Tensor dx, Tensor dg, Tensor dy, Tensor x, Tensor g) {
  with_float(dy.dtype(), [&]<typename T>(As<T>) {
    const Matrix<T> dxs = matrix<T>(stream, dx), dys = matrix<T>(stream, dy);
    const Matrix<T> xs = matrix<T>(stream, x);
    const float* gs = data<float>(stream, g);
    float* dgs = data<float>(stream, dg);
    enqueue(stream, "gate_dgrad", WorkClass::Memory, [=](Workers& workers) {
      parallel(workers, cut_rows(dys.rows, dys.columns), [&](Range rows) {
        for (std::int64_t t = rows.begin; t < rows.end; ++t) {
          const float s = sigmoid_f32(gs[t]);
          dgs[t] = dot(dys.row(t), xs.row(t), dys.columns) * s * (1.0f - s);
          scale_row(dxs.row(t), dys.row(t), dys.columns, s);
        }
      });
    });
  });
}

}  // namespace weft::kernels::cpu
