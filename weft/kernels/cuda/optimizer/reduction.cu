// Sums over long vectors in fp64, in runs of a fixed size, one block each. One block then adds the
// runs.
#include "weft/kernels/cuda/device/arguments.h"
#include "weft/kernels/cuda/device/block_sums.h"
#include "weft/kernels/cuda/device/operations.h"

namespace weft::kernels::cuda {
namespace reduction_kernels {
namespace {

constexpr int kThreads = 256;
constexpr int kTotalThreads = 1024;
constexpr std::int64_t kRun = 32 * 1024;  // elements

struct Itself {
  __device__ double operator()(double x) const { return x; }
};
struct Square {
  __device__ double operator()(double x) const { return x * x; }
};

struct IsZero {
  __device__ double operator()(double x) const { return x == 0 ? 1 : 0; }
};

template <typename T, typename Term>
__global__ void sum_run(double* parts, const T* x, std::int64_t n, Term term) {
  const std::int64_t begin = blockIdx.x * kRun;
  const std::int64_t end = min(n, begin + kRun);
  double sum = 0;
  for (std::int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) {
    sum += term(static_cast<double>(load(x[i])));
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

__global__ void sum_parts(double* total,
                          const double* parts,
                          std::int64_t part_count,
                          Write write) {
  double sum = 0;
  for (std::int64_t i = threadIdx.x; i < part_count; i += blockDim.x) sum += parts[i];
  sum = block_sum(sum);
  if (threadIdx.x == 0) *total = write == Write::Assign ? sum : *total + sum;
}

template <typename T, typename Term>
void enqueue_sum(Stream& stream,
                 std::string_view name,
                 const Tensor& result,
                 const Tensor& x,
                 Write write,
                 Term term) {
  const std::int64_t n = x.dim(0), part_count = (n + kRun - 1) / kRun;
  const T* xs = data<T>(stream, x);
  double* total = data<double>(stream, result);
  double* parts = scratch<double>(stream, part_count);
  enqueue_all(stream, name, WorkClass::Memory, [=](cudaStream_t handle) {
    if (part_count > 0) {
      const auto blocks = static_cast<unsigned>(part_count);
      sum_run<<<blocks, kThreads, 0, handle>>>(parts, xs, n, term);
    }
    sum_parts<<<1, kTotalThreads, 0, handle>>>(total, parts, part_count, write);
  });
}

}  // namespace
}  // namespace reduction_kernels

void squared_norm(Stream& stream, Tensor sum_1, Tensor x_N, Write write) {
  with_float(x_N.dtype(), [&]<typename T>(As<T>) {
    reduction_kernels::enqueue_sum<T>(stream,
                                      "squared_norm",
                                      sum_1,
                                      x_N,
                                      write,
                                      reduction_kernels::Square{});
  });
}

void sum(Stream& stream, Tensor sum_1, Tensor x_N) {
  reduction_kernels::enqueue_sum<float>(stream,
                                        "sum",
                                        sum_1,
                                        x_N,
                                        Write::Assign,
                                        reduction_kernels::Itself{});
}

void count_zeros(Stream& stream, Tensor count_1, Tensor x_N, Write write) {
  with_float(x_N.dtype(), [&]<typename T>(As<T>) {
    reduction_kernels::enqueue_sum<T>(stream,
                                      "count_zeros",
                                      count_1,
                                      x_N,
                                      write,
                                      reduction_kernels::IsZero{});
  });
}

}  // namespace weft::kernels::cuda
