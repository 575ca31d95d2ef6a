// A gate a row: y = x * sigmoid(g).
#include "weft/kernels/cuda/arguments.h"
#include "weft/kernels/cuda/block_sums.h"
#include "weft/kernels/cuda/operations.h"

namespace weft::kernels::cuda {
namespace {

constexpr int kThreads = 256;

__device__ float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

// A block takes whole rows.
template <typename T>
__global__ void forward(Matrix<T> y, Matrix<T> x, const float* g) {
  for (std::int64_t t = blockIdx.x; t < y.rows; t += gridDim.x) {
    const float s = sigmoid(g[t]);
    for (std::int64_t i = threadIdx.x; i < y.columns; i += blockDim.x) {
      store(y.row(t)[i], load(x.row(t)[i]) * s);
    }
  }
}

template <typename T>
__global__ void dgrad(Matrix<T> dx, float* dg, Matrix<T> dy, Matrix<T> x, const float* g) {
  for (std::int64_t t = blockIdx.x; t < dy.rows; t += gridDim.x) {
    const float s = sigmoid(g[t]);
    float dot = 0;
    for (std::int64_t i = threadIdx.x; i < dy.columns; i += blockDim.x) {
      const float d = load(dy.row(t)[i]);
      dot += d * load(x.row(t)[i]);
      store(dx.row(t)[i], d * s);
    }
    dot = block_sum(dot);
    if (threadIdx.x == 0) dg[t] = dot * s * (1.0f - s);
  }
}

Grid rows_grid(std::int64_t rows) { return {blocks_for(rows, 1), kThreads}; }

}  // namespace

void gate_forward(Stream& stream, Tensor y, Tensor x, Tensor g) {
  with_float(y.dtype(), [&]<typename T>(As<T>) {
    enqueue(stream,
            "gate_forward",
            WorkClass::Memory,
            rows_grid(y.dim(0)),
            forward<T>,
            matrix<T>(stream, y),
            matrix<T>(stream, x),
            data<float>(stream, g));
  });
}

void gate_dgrad(Stream& stream, Tensor dx, Tensor dg, Tensor dy, Tensor x, Tensor g) {
  with_float(dy.dtype(), [&]<typename T>(As<T>) {
    enqueue(stream,
            "gate_dgrad",
            WorkClass::Memory,
            rows_grid(dy.dim(0)),
            dgrad<T>,
            matrix<T>(stream, dx),
            data<float>(stream, dg),
            matrix<T>(stream, dy),
            matrix<T>(stream, x),
            data<float>(stream, g));
  });
}

}  // namespace weft::kernels::cuda
