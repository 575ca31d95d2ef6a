// RMSNorm over the columns of several ranks: the share of one rank in a row's sum, and the norm
// itself from the sum of all. A warp takes whole rows.
#include "weft/kernels/cuda/device/arguments.h"
#include "weft/kernels/cuda/device/operations.h"
#include "weft/kernels/cuda/device/packs.h"
#include "weft/kernels/cuda/device/warps.h"

namespace weft::kernels::cuda {
namespace shared_norm_kernels {
namespace {

constexpr int kThreads = 256;

template <int N, typename T>
__global__ void dots(float* sums, Matrix<T> a, Matrix<T> b, const T* w) {
  const std::int64_t packs = a.columns / N;
  for (std::int64_t t = first_warp(); t < a.rows; t += warp_step()) {
    float sum = 0;
    for (std::int64_t p = lane(); p < packs; p += kWarp) {
      const Pack<T, N> as = load_pack<N>(a.row(t) + p * N), bs = load_pack<N>(b.row(t) + p * N);
#pragma unroll
      for (int i = 0; i < N; ++i) {
        const float product = as[i] * bs[i];
        sum += w == nullptr ? product : load(w[p * N + i]) * product;
      }
    }
    sum = warp_sum(sum);
    if (lane() == 0) sums[t] = sum;
  }
}

template <int N, typename T>
__global__ void forward(Matrix<T> y,
                        float* rstd,
                        Matrix<T> x,
                        const T* w,
                        const float* squares,
                        SharedNorm norm) {
  const std::int64_t packs = x.columns / N;
  for (std::int64_t t = first_warp(); t < x.rows; t += warp_step()) {
    const float r = 1.0f / sqrtf(squares[t] / static_cast<float>(norm.width) + norm.epsilon);
    if (lane() == 0) rstd[t] = r;
    for (std::int64_t p = lane(); p < packs; p += kWarp) {
      const Pack<T, N> from = load_pack<N>(x.row(t) + p * N);
      float to[N];
#pragma unroll
      for (int i = 0; i < N; ++i) to[i] = from[i] * r * load(w[p * N + i]);
      store_pack(y.row(t) + p * N, packed<T>(to));
    }
  }
}

// dx = rstd * (w dy - x rstd^2 mean(w dy x)).
template <int N, typename T>
__global__ void dgrad(Matrix<T> dx,
                      Matrix<T> dy,
                      Matrix<T> x,
                      const T* w,
                      const float* rstd,
                      const float* sums,
                      SharedNorm norm) {
  const std::int64_t packs = x.columns / N;
  for (std::int64_t t = first_warp(); t < x.rows; t += warp_step()) {
    const float r = rstd[t], pull = sums[t] / static_cast<float>(norm.width) * r * r;
    for (std::int64_t p = lane(); p < packs; p += kWarp) {
      const Pack<T, N> from = load_pack<N>(x.row(t) + p * N);
      const Pack<T, N> gradient = load_pack<N>(dy.row(t) + p * N);
      float to[N];
#pragma unroll
      for (int i = 0; i < N; ++i) to[i] = r * (load(w[p * N + i]) * gradient[i] - from[i] * pull);
      store_pack(dx.row(t) + p * N, packed<T>(to));
    }
  }
}

Grid rows_grid(std::int64_t rows) { return {blocks_for(rows, kThreads / kWarp), kThreads}; }

}  // namespace
}  // namespace shared_norm_kernels

void row_dots(Stream& stream, Tensor dots, Tensor a, Tensor b, Tensor w) {
  with_float(a.dtype(), [&]<typename T>(As<T>) {
    const Matrix<T> as = matrix<T>(stream, a), bs = matrix<T>(stream, b);
    const T* ws = data_or_null<T>(stream, w);
    float* sums = data<float>(stream, dots);
    const auto enqueue_with = [&]<int N>(std::integral_constant<int, N>) {
      enqueue(stream,
              "row_dots",
              WorkClass::Memory,
              shared_norm_kernels::rows_grid(as.rows),
              shared_norm_kernels::dots<N, T>,
              sums,
              as,
              bs,
              ws);
    };
    with_packs<kPack<T>>(enqueue_with, as, bs);
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
    const Matrix<T> ys = matrix<T>(stream, y), xs = matrix<T>(stream, x);
    const T* ws = data<T>(stream, w);
    float* rstds = data<float>(stream, rstd);
    const float* sums = data<float>(stream, squares);
    const auto enqueue_with = [&]<int N>(std::integral_constant<int, N>) {
      enqueue(stream,
              "shared_norm_forward",
              WorkClass::Memory,
              shared_norm_kernels::rows_grid(xs.rows),
              shared_norm_kernels::forward<N, T>,
              ys,
              rstds,
              xs,
              ws,
              sums,
              norm);
    };
    with_packs<kPack<T>>(enqueue_with, ys, xs);
  });
}

void shared_norm_dgrad(Stream& stream,
                       Tensor dx,
                       Tensor dy,
                       Tensor x,
                       Tensor w,
                       Tensor rstd,
                       Tensor dots,
                       const SharedNorm& norm) {
  with_float(x.dtype(), [&]<typename T>(As<T>) {
    const Matrix<T> dxs = matrix<T>(stream, dx), dys = matrix<T>(stream, dy);
    const Matrix<T> xs = matrix<T>(stream, x);
    const T* ws = data<T>(stream, w);
    const float *rstds = data<float>(stream, rstd), *sums = data<float>(stream, dots);
    const auto enqueue_with = [&]<int N>(std::integral_constant<int, N>) {
      enqueue(stream,
              "shared_norm_dgrad",
              WorkClass::Memory,
              shared_norm_kernels::rows_grid(xs.rows),
              shared_norm_kernels::dgrad<N, T>,
              dxs,
              dys,
              xs,
              ws,
              rstds,
              sums,
              norm);
    };
    with_packs<kPack<T>>(enqueue_with, dxs, dys, xs);
  });
}

}  // namespace weft::kernels::cuda
