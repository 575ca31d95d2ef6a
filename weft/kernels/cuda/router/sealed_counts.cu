// Counts that travel with a code, which reveals a damaged message.
#include "weft/base/sealed_count.h"
#include "weft/kernels/cuda/device/arguments.h"
#include "weft/kernels/cuda/device/operations.h"
#include "weft/kernels/cuda/device/random.h"

namespace weft::kernels::cuda {
namespace sealed_counts_kernels {
namespace {

constexpr int kThreads = 256;

// As base::seal.
__device__ std::int64_t sealed(std::int64_t count, std::int64_t member, std::int64_t place) {
  constexpr int kCountBits = 40;
  static_assert(base::kLargestSealable == (std::int64_t{1} << kCountBits) - 1);
  const auto number = std::uint64_t(count);
  const std::uint32_t code = philox(number, std::uint64_t(place), std::uint64_t(member)).x[0];
  return std::int64_t(std::uint64_t{code} << kCountBits | number);
}

__global__ void seal(std::int64_t* numbers, std::int64_t n, std::int64_t member, Faults faults) {
  for (std::int64_t i = first_index(); i < n; i += index_step()) {
    if (numbers[i] < 0 || numbers[i] > base::kLargestSealable) {
      faults.raise(FaultCode::CountTooLarge, numbers[i]);
    } else {
      numbers[i] = sealed(numbers[i], member, i);
    }
  }
}

__global__ void open(Matrix<std::int64_t> table, Faults faults) {
  const std::int64_t n = table.rows * table.columns;
  for (std::int64_t at = first_index(); at < n; at += index_step()) {
    const std::int64_t member = at / table.columns, i = at % table.columns;
    std::int64_t& number = table.row(member)[i];
    const std::int64_t count = number & base::kLargestSealable;
    if (sealed(count, member, i) != number) {
      faults.raise(FaultCode::CountsDamaged, i, member, number);
    } else {
      number = count;
    }
  }
}

}  // namespace
}  // namespace sealed_counts_kernels

void seal_counts(Stream& stream, Tensor counts, std::int64_t member) {
  const std::int64_t n = counts.dim(0);
  auto* numbers = data<std::int64_t>(stream, counts);
  const Faults faults(stream);
  enqueue(stream,
          "seal_counts",
          WorkClass::Memory,
          {blocks_for(n, sealed_counts_kernels::kThreads), sealed_counts_kernels::kThreads},
          sealed_counts_kernels::seal,
          numbers,
          n,
          member,
          faults);
}

void open_counts(Stream& stream, Tensor counts) {
  const Matrix<std::int64_t> table = matrix<std::int64_t>(stream, counts);
  const Faults faults(stream);
  enqueue(stream,
          "open_counts",
          WorkClass::Memory,
          {blocks_for(table.rows * table.columns, sealed_counts_kernels::kThreads),
           sealed_counts_kernels::kThreads},
          sealed_counts_kernels::open,
          table,
          faults);
}

}  // namespace weft::kernels::cuda
