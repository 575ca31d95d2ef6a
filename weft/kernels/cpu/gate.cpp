// A gate a row: y = x * sigmoid(g).
#include "weft/kernels/cpu/arguments.h"
#include "weft/kernels/cpu/vector_math.h"
#include "weft/kernels/cpu/work_cut.h"
#include "weft/kernels/kernels.h"

namespace weft::kernels {

using namespace cpu;

namespace {

void check_gate(const Tensor& y, const Tensor& x, const Tensor& g) {
  const auto [rows, width] = matrix_shape("y", y);
  check_matrix("x", x, rows, width);
  check_dtype("x", x, y.dtype());
  check_vector("g", g, rows);
  check_dtype("g", g, DType::F32);
}

template <typename T>
void scale_row(T* y, const T* x, std::int64_t n, float factor) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) store(y[i], load(x[i]) * factor);
}

template <typename T>
float dot_row(const T* a, const T* b, std::int64_t n) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) sum += load(a[i]) * load(b[i]);
  return sum;
}

}  // namespace

void gate_forward(Stream& stream, Tensor y, Tensor x, Tensor g) {
  check_gate(y, x, g);
  with_float(y.dtype(), [&]<typename T>(As<T>) {
    const Matrix<T> ys = matrix<T>(stream, y), xs = matrix<T>(stream, x);
    const float* gs = g.data<float>(stream);
    stream.enqueue("gate_forward", WorkClass::Memory, [=](Workers& workers) {
      parallel(workers, cut_rows(ys.rows, ys.columns), [&](Range rows) {
        for (std::int64_t t = rows.begin; t < rows.end; ++t) {
          scale_row(ys.row(t), xs.row(t), ys.columns, sigmoid_f32(gs[t]));
        }
      });
    });
  });
}

void gate_dgrad(Stream& stream, Tensor dx, Tensor dg, Tensor dy, Tensor x, Tensor g) {
  check_gate(dy, x, g);
  check_gate(dy, dx, dg);
  with_float(dy.dtype(), [&]<typename T>(As<T>) {
    const Matrix<T> dxs = matrix<T>(stream, dx), dys = matrix<T>(stream, dy);
    const Matrix<T> xs = matrix<T>(stream, x);
    const float* gs = g.data<float>(stream);
    float* dgs = dg.data<float>(stream);
    stream.enqueue("gate_dgrad", WorkClass::Memory, [=](Workers& workers) {
      parallel(workers, cut_rows(dys.rows, dys.columns), [&](Range rows) {
        for (std::int64_t t = rows.begin; t < rows.end; ++t) {
          const float s = sigmoid_f32(gs[t]);
          dgs[t] = dot_row(dys.row(t), xs.row(t), dys.columns) * s * (1.0f - s);
          scale_row(dxs.row(t), dys.row(t), dys.columns, s);
        }
      });
    });
  });
}

}  // namespace weft::kernels
