#include "weft/tensor/cpu/reduce.h"

#include <algorithm>
#include <array>
#include <type_traits>

#include "weft/base/check.h"

namespace weft::tensor::cpu {
namespace {

constexpr std::int64_t kBlock = 512;  // elements per block, in the first-level cache

struct Add {
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
    } else {
      return a + b;
    }
  }
};

struct Largest {
  template <typename T>
  T operator()(T a, T b) const {
    return b > a || b != b ? b : a;
  }
};

// Reads a whole block before writing any of it, so that `out` may be a source. Sums of T are
// computed as Wide.
template <typename T, typename Wide = T, typename Combine>
void reduce_typed(Combine combine,
                  std::byte* out_bytes,
                  std::span<const std::byte* const> sources,
                  std::int64_t elements) {
  std::array<Wide, kBlock> sum;
  for (std::int64_t begin = 0; begin < elements; begin += kBlock) {
    const std::int64_t count = std::min(kBlock, elements - begin);
    const T* first = reinterpret_cast<const T*>(sources[0]) + begin;
    Wide* into = sum.data();
    for (std::int64_t i = 0; i < count; ++i) into[i] = static_cast<Wide>(first[i]);
    for (const std::byte* source : sources.subspan(1)) {
      const T* more = reinterpret_cast<const T*>(source) + begin;
#pragma omp simd
      for (std::int64_t i = 0; i < count; ++i) {
        into[i] = combine(into[i], static_cast<Wide>(more[i]));
      }
    }
    T* out = reinterpret_cast<T*>(out_bytes) + begin;
    for (std::int64_t i = 0; i < count; ++i) out[i] = static_cast<T>(into[i]);
  }
}

template <typename Combine>
void reduce_with(Combine combine,
                 DType dtype,
                 std::byte* out,
                 std::span<const std::byte* const> sources,
                 std::int64_t elements) {
  if (dtype == DType::F32) return reduce_typed<float>(combine, out, sources, elements);
  if (dtype == DType::F64) return reduce_typed<double>(combine, out, sources, elements);
  if (dtype == DType::I64) return reduce_typed<std::int64_t>(combine, out, sources, elements);
  if (dtype == DType::BF16) return reduce_typed<BFloat16, float>(combine, out, sources, elements);
  check_reducible(dtype);
}

}  // namespace

void reduce_in_order(DType dtype,
                     Reduce reduce,
                     std::byte* out,
                     std::span<const std::byte* const> sources,
                     std::int64_t elements) {
  switch (reduce) {
    case Reduce::Sum:
      return reduce_with(Add{}, dtype, out, sources, elements);
    case Reduce::Max:
      return reduce_with(Largest{}, dtype, out, sources, elements);
  }
}

}  // namespace weft::tensor::cpu
