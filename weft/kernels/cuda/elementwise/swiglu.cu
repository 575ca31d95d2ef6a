// SwiGLU, y = silu(gate) * up, also times a weight per row.
#include "weft/kernels/cuda/device/arguments.h"
#include "weft/kernels/cuda/device/operations.h"
#include "weft/kernels/cuda/device/packs.h"
#include "weft/kernels/cuda/device/warps.h"
#include "weft/kernels/cuda/elementwise/sigmoid.h"

namespace weft::kernels::cuda {
namespace swiglu_kernels {
namespace {

constexpr int kThreads = 256;
// Packs that a lane loads before it computes: a row of 768 bf16 elements at once.
constexpr int kAtOnce = 3;

template <typename T, int N>
__device__ Pack<T, N> activated(const Pack<T, N>& gate, const Pack<T, N>& up, float weight) {
  float y[N];
#pragma unroll
  for (int i = 0; i < N; ++i) y[i] = gate[i] * sigmoid(gate[i]) * up[i] * weight;
  return packed<T>(y);
}

// `p`: weights; nullptr: none. A warp takes whole rows.
template <int N, typename T>
__global__ void forward(Matrix<T> y, Matrix<T> h, const float* p) {
  const std::int64_t packs = y.columns / N;
  for (std::int64_t t = first_warp(); t < y.rows; t += warp_step()) {
    const float weight = p == nullptr ? 1.0f : p[t];
    const T *gates = h.row(t), *ups = gates + y.columns;
    for (std::int64_t first = lane(); first < packs; first += kAtOnce * kWarp) {
      Pack<T, N> gate[kAtOnce], up[kAtOnce];
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) {
        const std::int64_t c = first + j * kWarp;
        if (c >= packs) break;
        gate[j] = read_once<N>(gates + c * N);
        up[j] = read_once<N>(ups + c * N);
      }
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) {
        const std::int64_t c = first + j * kWarp;
        if (c >= packs) break;
        write_past_caches(y.row(t) + c * N, activated(gate[j], up[j], weight));
      }
    }
  }
}

// Gradients of a pack of gates and of its ups.
template <typename T, int N>
struct PackGradient {
  Pack<T, N> dgate, dup;
};

// Adds the gradient of the weight to dweight.
template <typename T, int N>
__device__ PackGradient<T, N> gradient_of(const Pack<T, N>& gate,
                                          const Pack<T, N>& up,
                                          const Pack<T, N>& dy,
                                          float weight,
                                          float& dweight) {
  float dgate[N], dup[N];
#pragma unroll
  for (int i = 0; i < N; ++i) {
    const float g = gate[i], u = up[i], d = dy[i];
    const float s = sigmoid(g);
    const float silu = g * s;
    dweight += d * silu * u;
    dgate[i] = d * weight * u * (s + silu * (1.0f - s));
    dup[i] = d * weight * silu;
  }
  return {packed<T>(dgate), packed<T>(dup)};
}

// Gradient of (gate | up), and of the weight if there is one.
template <int N, typename T>
__global__ void dgrad(Matrix<T> dh, float* dp, Matrix<T> dy, Matrix<T> h, const float* p) {
  const std::int64_t packs = dy.columns / N;
  for (std::int64_t t = first_warp(); t < dy.rows; t += warp_step()) {
    const float weight = p == nullptr ? 1.0f : p[t];
    const T *gates = h.row(t), *ups = gates + dy.columns, *dys = dy.row(t);
    T *dgates = dh.row(t), *dups = dgates + dy.columns;
    float dweight = 0;
    for (std::int64_t first = lane(); first < packs; first += kAtOnce * kWarp) {
      Pack<T, N> gate[kAtOnce], up[kAtOnce], d[kAtOnce];
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) {
        const std::int64_t c = first + j * kWarp;
        if (c >= packs) break;
        gate[j] = read_once<N>(gates + c * N);
        up[j] = read_once<N>(ups + c * N);
        d[j] = read_once<N>(dys + c * N);
      }
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) {
        const std::int64_t c = first + j * kWarp;
        if (c >= packs) break;
        const auto gradient = gradient_of(gate[j], up[j], d[j], weight, dweight);
        write_past_caches(dgates + c * N, gradient.dgate);
        write_past_caches(dups + c * N, gradient.dup);
      }
    }
    if (dp == nullptr) continue;
    dweight = warp_sum(dweight);
    if (lane() == 0) dp[t] = dweight;
  }
}

Grid rows_grid(std::int64_t rows) { return {blocks_for(rows, kThreads / kWarp), kThreads}; }

template <typename T>
void enqueue_forward(Stream& stream,
                     std::string_view name,
                     const Matrix<T>& y,
                     const Matrix<T>& h,
                     const float* p) {
  with_packs<kPack<T>>(
      [&]<int N>(std::integral_constant<int, N>) {
        enqueue(stream, name, WorkClass::Memory, rows_grid(y.rows), forward<N, T>, y, h, p);
      },
      y,
      h);
}

template <typename T>
void enqueue_dgrad(Stream& stream,
                   std::string_view name,
                   const Matrix<T>& dh,
                   float* dp,
                   const Matrix<T>& dy,
                   const Matrix<T>& h,
                   const float* p) {
  with_packs<kPack<T>>(
      [&]<int N>(std::integral_constant<int, N>) {
        enqueue(stream, name, WorkClass::Memory, rows_grid(dy.rows), dgrad<N, T>, dh, dp, dy, h, p);
      },
      dh,
      dy,
      h);
}

}  // namespace
}  // namespace swiglu_kernels

void swiglu_forward(Stream& stream, Tensor y, Tensor h) {
  with_float(y.dtype(), [&]<typename T>(As<T>) {
    const Matrix<T> ys = matrix<T>(stream, y), hs = matrix<T>(stream, h);
    swiglu_kernels::enqueue_forward(stream, "swiglu_forward", ys, hs, nullptr);
  });
}

void weighted_swiglu_forward(Stream& stream, Tensor y, Tensor h, Tensor p) {
  with_float(y.dtype(), [&]<typename T>(As<T>) {
    const Matrix<T> ys = matrix<T>(stream, y), hs = matrix<T>(stream, h);
    swiglu_kernels::enqueue_forward(stream,
                                    "weighted_swiglu_forward",
                                    ys,
                                    hs,
                                    data<float>(stream, p));
  });
}

void swiglu_dgrad(Stream& stream, Tensor dh, Tensor dy, Tensor h) {
  with_float(h.dtype(), [&]<typename T>(As<T>) {
    const Matrix<T> dhs = matrix<T>(stream, dh), dys = matrix<T>(stream, dy);
    const Matrix<T> hs = matrix<T>(stream, h);
    swiglu_kernels::enqueue_dgrad(stream, "swiglu_dgrad", dhs, nullptr, dys, hs, nullptr);
  });
}

void weighted_swiglu_dgrad(Stream& stream, Tensor dh, Tensor dp, Tensor dy, Tensor h, Tensor p) {
  with_float(h.dtype(), [&]<typename T>(As<T>) {
    const Matrix<T> dhs = matrix<T>(stream, dh), dys = matrix<T>(stream, dy);
    const Matrix<T> hs = matrix<T>(stream, h);
    float* dps = data<float>(stream, dp);
    swiglu_kernels::enqueue_dgrad(stream,
                                  "weighted_swiglu_dgrad",
                                  dhs,
                                  dps,
                                  dys,
                                  hs,
                                  data<float>(stream, p));
  });
}

}  // namespace weft::kernels::cuda
