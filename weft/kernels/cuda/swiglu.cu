// SwiGLU, y = silu(gate) * up, and the same times a weight a row.
#include "weft/kernels/cuda/arguments.h"
#include "weft/kernels/cuda/block_sums.h"
#include "weft/kernels/cuda/operations.h"

namespace weft::kernels::cuda {
namespace {

constexpr int kThreads = 256;

__device__ float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

// `p`: the weights, or null for none. A block takes whole rows.
template <typename T>
__global__ void forward(Matrix<T> y, Matrix<T> h, const float* p) {
  for (std::int64_t t = blockIdx.x; t < y.rows; t += gridDim.x) {
    const float weight = p == nullptr ? 1.0f : p[t];
    const T* gate = h.row(t);
    const T* up = gate + y.columns;
    for (std::int64_t i = threadIdx.x; i < y.columns; i += blockDim.x) {
      const float g = load(gate[i]);
      store(y.row(t)[i], g * sigmoid(g) * load(up[i]) * weight);
    }
  }
}

// The gradient of (gate | up), and of the weight where there is one.
template <typename T>
__global__ void dgrad(Matrix<T> dh, float* dp, Matrix<T> dy, Matrix<T> h, const float* p) {
  for (std::int64_t t = blockIdx.x; t < dy.rows; t += gridDim.x) {
    const float weight = p == nullptr ? 1.0f : p[t];
    float dweight = 0;
    for (std::int64_t i = threadIdx.x; i < dy.columns; i += blockDim.x) {
      const float g = load(h.row(t)[i]), u = load(h.row(t)[dy.columns + i]);
      const float d = load(dy.row(t)[i]);
      const float s = sigmoid(g);
      const float silu = g * s;
      dweight += d * silu * u;
      store(dh.row(t)[i], d * weight * u * (s + silu * (1.0f - s)));
      store(dh.row(t)[dy.columns + i], d * weight * silu);
    }
    dweight = block_sum(dweight);
    if (dp != nullptr && threadIdx.x == 0) dp[t] = dweight;
  }
}

Grid rows_grid(std::int64_t rows) { return {blocks_for(rows, 1), kThreads}; }

}  // namespace

void swiglu_forward(Stream& stream, Tensor y, Tensor h) {
  with_float(y.dtype(), [&]<typename T>(As<T>) {
    enqueue(stream,
            "swiglu_forward",
            WorkClass::Memory,
            rows_grid(y.dim(0)),
            forward<T>,
            matrix<T>(stream, y),
            matrix<T>(stream, h),
            nullptr);
  });
}

void weighted_swiglu_forward(Stream& stream, Tensor y, Tensor h, Tensor p) {
  with_float(y.dtype(), [&]<typename T>(As<T>) {
    enqueue(stream,
            "weighted_swiglu_forward",
            WorkClass::Memory,
            rows_grid(y.dim(0)),
            forward<T>,
            matrix<T>(stream, y),
            matrix<T>(stream, h),
            data<float>(stream, p));
  });
}

void swiglu_dgrad(Stream& stream, Tensor dh, Tensor dy, Tensor h) {
  with_float(h.dtype(), [&]<typename T>(As<T>) {
    enqueue(stream,
            "swiglu_dgrad",
            WorkClass::Memory,
            rows_grid(dy.dim(0)),
            dgrad<T>,
            matrix<T>(stream, dh),
            nullptr,
            matrix<T>(stream, dy),
            matrix<T>(stream, h),
            nullptr);
  });
}

void weighted_swiglu_dgrad(Stream& stream, Tensor dh, Tensor dp, Tensor dy, Tensor h, Tensor p) {
  with_float(h.dtype(), [&]<typename T>(As<T>) {
    enqueue(stream,
            "weighted_swiglu_dgrad",
            WorkClass::Memory,
            rows_grid(dy.dim(0)),
            dgrad<T>,
            matrix<T>(stream, dh),
            data<float>(stream, dp),
            matrix<T>(stream, dy),
            matrix<T>(stream, h),
            data<float>(stream, p));
  });
}

}  // namespace weft::kernels::cuda
