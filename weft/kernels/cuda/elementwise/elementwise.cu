#include <algorithm>

#include "weft/kernels/cuda/device/byte_rows.h"
#include "weft/kernels/cuda/device/operations.h"
#include "weft/kernels/cuda/device/packs.h"
#include "weft/tensor/cuda/call.h"

namespace weft::kernels::cuda {
namespace elementwise_kernels {
namespace {

using tensor::cuda::check;

constexpr int kThreads = 256;

struct Sum {
  __device__ float operator()(float a, float b) const { return a + b; }
};
struct Product {
  float factor;
  __device__ float operator()(float x) const { return x * factor; }
};
struct Same {
  __device__ float operator()(float x) const { return x; }
};

// Elements that a thread takes at once: they fill 16 bytes of the widest dtype.
template <typename... Types>
constexpr int kAtOnce = 16 / std::max({sizeof(Types)...});

// y[i] = map(x[i]...): whole packs, then the remaining elements one by one. y may be one of x: the
// thread that writes an element reads it.
template <typename Map, typename To, typename... From>
__global__ void map_elements(To* y, std::int64_t packs, std::int64_t n, Map map, const From*... x) {
  constexpr int kCount = kAtOnce<To, From...>;
  const auto mapped = [&](const Pack<From, kCount>&... each) {
    float values[kCount];
#pragma unroll
    for (int i = 0; i < kCount; ++i) values[i] = map(each[i]...);
    return packed<To>(values);
  };
  for (std::int64_t p = first_index(); p < packs; p += index_step()) {
    store_pack(y + p * kCount, mapped(load_pack<kCount>(x + p * kCount)...));
  }
  for (std::int64_t i = packs * kCount + first_index(); i < n; i += index_step()) {
    store(y[i], map(load(x[i])...));
  }
}

template <typename To, typename From>
__global__ void convert_rows(Matrix<To> y, Matrix<From> x) {
  for (std::int64_t r = first_row(); r < y.rows; r += row_step()) {
    for (std::int64_t c = threadIdx.x; c < y.columns; c += blockDim.x) {
      store(y.row(r)[c], load(x.row(r)[c]));
    }
  }
}

template <typename T>
__global__ void fill_elements(T* y, T value, std::int64_t n) {
  for (std::int64_t i = first_index(); i < n; i += index_step()) y[i] = value;
}

Grid grid_of(std::int64_t items) { return {blocks_for(items, kThreads), kThreads}; }

template <typename Map, typename To, typename... From>
void enqueue_map(Stream& stream,
                 std::string_view name,
                 const Map& map,
                 std::int64_t n,
                 To* y,
                 const From*... x) {
  constexpr int kCount = kAtOnce<To, From...>;
  const bool whole = (starts_pack(x, kCount) && ...) && starts_pack(y, kCount);
  const std::int64_t packs = whole ? n / kCount : 0;
  enqueue(stream,
          name,
          WorkClass::Memory,
          grid_of(whole ? packs + n % kCount : n),
          map_elements<Map, To, From...>,
          y,
          packs,
          n,
          map,
          x...);
}

template <typename T>
void fill_with(Stream& stream, const Tensor& y, std::int64_t value) {
  enqueue(stream,
          "fill",
          WorkClass::Memory,
          grid_of(y.elements()),
          fill_elements<T>,
          data<T>(stream, y),
          static_cast<T>(value),
          y.elements());
}

template <typename To, typename From>
void convert(Stream& stream, const Tensor& y, const Tensor& x) {
  if (y.contiguous() && x.contiguous()) {
    To* to = data<To>(stream, y);
    const From* from = data<From>(stream, x);
    return enqueue_map<Same, To, From>(stream, "copy", {}, y.elements(), to, from);
  }
  enqueue(stream,
          "copy",
          WorkClass::Memory,
          short_rows_grid(y.dim(0), y.dim(1)),
          convert_rows<To, From>,
          matrix<To>(stream, y),
          matrix<From>(stream, x));
}

}  // namespace
}  // namespace elementwise_kernels

void add(Stream& stream, Tensor y, Tensor a, Tensor b) {
  with_float(y.dtype(), [&]<typename T>(As<T>) {
    T *to = data<T>(stream, y), *as = data<T>(stream, a), *bs = data<T>(stream, b);
    elementwise_kernels::enqueue_map<elementwise_kernels::Sum, T, T, T>(stream,
                                                                        "add",
                                                                        {},
                                                                        y.elements(),
                                                                        to,
                                                                        as,
                                                                        bs);
  });
}

void accumulate(Stream& stream, Tensor y, Tensor a) {
  with_float(y.dtype(), [&]<typename T>(As<T>) {
    T* to = data<T>(stream, y);
    float* as = data<float>(stream, a);
    elementwise_kernels::enqueue_map<elementwise_kernels::Sum, T, T, float>(stream,
                                                                            "accumulate",
                                                                            {},
                                                                            y.elements(),
                                                                            to,
                                                                            to,
                                                                            as);
  });
}

void scale(Stream& stream, Tensor y, float factor) {
  float* to = data<float>(stream, y);
  elementwise_kernels::enqueue_map<elementwise_kernels::Product, float, float>(stream,
                                                                               "scale",
                                                                               {factor},
                                                                               y.elements(),
                                                                               to,
                                                                               to);
}

void zero(Stream& stream, Tensor y) {
  std::byte* to = y.raw(stream);
  const auto bytes = static_cast<std::size_t>(y.bytes());
  enqueue_all(stream, "zero", WorkClass::Memory, [=](cudaStream_t handle) {
    if (bytes > 0)
      elementwise_kernels::check("cudaMemsetAsync", cudaMemsetAsync(to, 0, bytes, handle));
  });
}

void fill(Stream& stream, Tensor y, std::int64_t value) {
  if (y.dtype() == DType::I32) {
    elementwise_kernels::fill_with<std::int32_t>(stream, y, value);
  } else {
    elementwise_kernels::fill_with<std::int64_t>(stream, y, value);
  }
}

void copy(Stream& stream, Tensor y, Tensor x) {
  const bool whole = y.contiguous() && x.contiguous();
  if (y.dtype() == x.dtype() && !whole) {
    const RowBlock all{.from = 0, .to = 0, .rows = y.dim(0)};
    return copy_rows(stream, std::move(y), std::move(x), {&all, 1});
  }
  if (y.dtype() == x.dtype()) {
    std::byte *to = y.raw(stream), *from = x.raw(stream);
    const auto bytes = static_cast<std::size_t>(y.bytes());
    enqueue_all(stream, "copy", WorkClass::Copy, [=](cudaStream_t handle) {
      if (bytes == 0) return;
      elementwise_kernels::check("cudaMemcpyAsync",
                                 cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, handle));
    });
    return;
  }
  if (y.dtype() == DType::F32) {
    elementwise_kernels::convert<float, BFloat16>(stream, y, x);
  } else {
    elementwise_kernels::convert<BFloat16, float>(stream, y, x);
  }
}

}  // namespace weft::kernels::cuda
