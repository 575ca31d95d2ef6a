// Sums over long vectors, fp64, in blocks of a fixed size added in their order.
#include "weft/kernels/cpu/arguments.h"
#include "weft/kernels/cpu/gemm/work_cut.h"
#include "weft/kernels/cpu/operations.h"

namespace weft::kernels::cpu {

namespace {

template <typename T, typename BlockSum>
void enqueue_sum(Stream& stream,
                 std::string_view name,
                 const Tensor& result,
                 const Tensor& x,
                 Write write,
                 BlockSum block_sum) {
  const std::int64_t elements = x.dim(0);
  const T* xs = data<T>(stream, x);
  double* total = data<double>(stream, result);
  enqueue(stream, name, WorkClass::Memory, [=](Workers& workers) {
    const double sum = parallel_sum(workers, cut_elements(elements), [&](Range range) {
      return block_sum(xs + range.begin, range.size());
    });
    *total = write == Write::Assign ? sum : *total + sum;
  });
}

}  // namespace

void squared_norm(Stream& stream, Tensor sum_1, Tensor x_N, Write write) {
  with_float(x_N.dtype(), [&]<typename T>(As<T>) {
    enqueue_sum<T>(stream, "squared_norm", sum_1, x_N, write, [](const T* x, std::int64_t n) {
      double total = 0;
#pragma omp simd reduction(+ : total)
      for (std::int64_t i = 0; i < n; ++i) {
        total += static_cast<double>(load(x[i])) * static_cast<double>(load(x[i]));
      }
      return total;
    });
  });
}

void sum(Stream& stream, Tensor sum_1, Tensor x_N) {
  enqueue_sum<float>(stream, "sum", sum_1, x_N, Write::Assign, [](const float* x, std::int64_t n) {
    double total = 0;
#pragma omp simd reduction(+ : total)
    for (std::int64_t i = 0; i < n; ++i) total += static_cast<double>(x[i]);
    return total;
  });
}

void count_zeros(Stream& stream, Tensor count_1, Tensor x_N, Write write) {
  with_float(x_N.dtype(), [&]<typename T>(As<T>) {
    enqueue_sum<T>(stream, "count_zeros", count_1, x_N, write, [](const T* x, std::int64_t n) {
      std::int64_t zeros = 0;
#pragma omp simd reduction(+ : zeros)
      for (std::int64_t i = 0; i < n; ++i) zeros += load(x[i]) == 0 ? 1 : 0;
      return static_cast<double>(zeros);
    });
  });
}

}  // namespace weft::kernels::cpu
