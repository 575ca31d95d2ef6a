// Gates, one per row: y = x * sigmoid(g).
#include "weft/kernels/cuda/device/arguments.h"
#include "weft/kernels/cuda/device/operations.h"
#include "weft/kernels/cuda/device/packs.h"
#include "weft/kernels/cuda/device/warps.h"
#include "weft/kernels/cuda/elementwise/sigmoid.h"

namespace weft::kernels::cuda {
namespace gate_kernels {
namespace {

constexpr int kThreads = 256;
constexpr int kAtOnce = 4;  // packs that a lane loads before it computes

// A warp takes whole rows.
template <int N, typename T>
__global__ void forward(Matrix<T> y, Matrix<T> x, const float* g) {
  const std::int64_t packs = y.columns / N;
  for (std::int64_t t = first_warp(); t < y.rows; t += warp_step()) {
    const float s = sigmoid(g[t]);
#pragma unroll 1  // an unrolled loop takes more registers
    for (std::int64_t first = lane(); first < packs; first += kAtOnce * kWarp) {
      Pack<T, N> from[kAtOnce];
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) {
        const std::int64_t c = first + j * kWarp;
        if (c >= packs) break;
        from[j] = read_once<N>(x.row(t) + c * N);
      }
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) {
        const std::int64_t c = first + j * kWarp;
        if (c >= packs) break;
        float to[N];
#pragma unroll
        for (int i = 0; i < N; ++i) to[i] = from[j][i] * s;
        store_pack(y.row(t) + c * N, packed<T>(to));
      }
    }
  }
}

template <int N, typename T>
__global__ void dgrad(Matrix<T> dx, float* dg, Matrix<T> dy, Matrix<T> x, const float* g) {
  const std::int64_t packs = dy.columns / N;
  for (std::int64_t t = first_warp(); t < dy.rows; t += warp_step()) {
    const float s = sigmoid(g[t]);
    float dot = 0;
    for (std::int64_t first = lane(); first < packs; first += kAtOnce * kWarp) {
      Pack<T, N> d[kAtOnce], from[kAtOnce];
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) {
        const std::int64_t c = first + j * kWarp;
        if (c >= packs) break;
        d[j] = read_once<N>(dy.row(t) + c * N);
        from[j] = read_once<N>(x.row(t) + c * N);
      }
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) {
        const std::int64_t c = first + j * kWarp;
        if (c >= packs) break;
        float to[N];
#pragma unroll
        for (int i = 0; i < N; ++i) {
          dot += d[j][i] * from[j][i];
          to[i] = d[j][i] * s;
        }
        store_pack(dx.row(t) + c * N, packed<T>(to));
      }
    }
    dot = warp_sum(dot);
    if (lane() == 0) dg[t] = dot * s * (1.0f - s);
  }
}

Grid rows_grid(std::int64_t rows) { return {blocks_for(rows, kThreads / kWarp), kThreads}; }

}  // namespace
}  // namespace gate_kernels

void gate_forward(Stream& stream, Tensor y, Tensor x, Tensor g) {
  with_float(y.dtype(), [&]<typename T>(As<T>) {
    const Matrix<T> ys = matrix<T>(stream, y), xs = matrix<T>(stream, x);
    const float* gs = data<float>(stream, g);
    const auto enqueue_with = [&]<int N>(std::integral_constant<int, N>) {
      enqueue(stream,
              "gate_forward",
              WorkClass::Memory,
              gate_kernels::rows_grid(ys.rows),
              gate_kernels::forward<N, T>,
              ys,
              xs,
              gs);
    };
    with_packs<kPack<T>>(enqueue_with, ys, xs);
  });
}

void gate_dgrad(Stream& stream, Tensor dx, Tensor dg, Tensor dy, Tensor x, Tensor g) {
  with_float(dy.dtype(), [&]<typename T>(As<T>) {
    const Matrix<T> dxs = matrix<T>(stream, dx), dys = matrix<T>(stream, dy);
    const Matrix<T> xs = matrix<T>(stream, x);
    float* dgs = data<float>(stream, dg);
    const float* gs = data<float>(stream, g);
    const auto enqueue_with = [&]<int N>(std::integral_constant<int, N>) {
      enqueue(stream,
              "gate_dgrad",
              WorkClass::Memory,
              gate_kernels::rows_grid(dys.rows),
              gate_kernels::dgrad<N, T>,
              dxs,
              dgs,
              dys,
              xs,
              gs);
    };
    with_packs<kPack<T>>(enqueue_with, dxs, dys, xs);
  });
}

}  // namespace weft::kernels::cuda
