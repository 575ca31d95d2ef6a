#include "weft/kernels/cuda/arguments.h"
#include "weft/kernels/cuda/operations.h"
#include "weft/tensor/cuda/call.h"

namespace weft::kernels::cuda {
namespace {

using tensor::cuda::check;

constexpr int kThreads = 256;

// y may be a or b: an element is read by the thread that writes it.
template <typename T>
__global__ void add_elements(T* y, const T* a, const T* b, std::int64_t n) {
  for (std::int64_t i = first_index(); i < n; i += index_step()) {
    store(y[i], load(a[i]) + load(b[i]));
  }
}

__global__ void scale_elements(float* y, float factor, std::int64_t n) {
  for (std::int64_t i = first_index(); i < n; i += index_step()) y[i] *= factor;
}

template <typename T>
__global__ void fill_elements(T* y, T value, std::int64_t n) {
  for (std::int64_t i = first_index(); i < n; i += index_step()) y[i] = value;
}

template <typename To, typename From>
__global__ void convert_elements(To* y, const From* x, std::int64_t n) {
  for (std::int64_t i = first_index(); i < n; i += index_step()) store(y[i], load(x[i]));
}

Grid grid_of(const Tensor& y) { return {blocks_for(y.elements(), kThreads), kThreads}; }

template <typename To, typename From>
void convert(Stream& stream, const Tensor& y, const Tensor& x) {
  enqueue(stream,
          "copy",
          WorkClass::Memory,
          grid_of(y),
          convert_elements<To, From>,
          data<To>(stream, y),
          data<From>(stream, x),
          y.elements());
}

template <typename T>
void fill_with(Stream& stream, const Tensor& y, std::int64_t value) {
  enqueue(stream,
          "fill",
          WorkClass::Memory,
          grid_of(y),
          fill_elements<T>,
          data<T>(stream, y),
          static_cast<T>(value),
          y.elements());
}

template <typename T>
void enqueue_add(Stream& stream,
                 std::string_view name,
                 const Tensor& y,
                 const Tensor& a,
                 const Tensor& b) {
  enqueue(stream,
          name,
          WorkClass::Memory,
          grid_of(y),
          add_elements<T>,
          data<T>(stream, y),
          data<T>(stream, a),
          data<T>(stream, b),
          y.elements());
}

}  // namespace

void add(Stream& stream, Tensor y, Tensor a, Tensor b) {
  with_float(y.dtype(), [&]<typename T>(As<T>) { enqueue_add<T>(stream, "add", y, a, b); });
}

void accumulate(Stream& stream, Tensor y, Tensor a) {
  enqueue_add<float>(stream, "accumulate", y, y, a);
}

void scale(Stream& stream, Tensor y, float factor) {
  enqueue(stream,
          "scale",
          WorkClass::Memory,
          grid_of(y),
          scale_elements,
          data<float>(stream, y),
          factor,
          y.elements());
}

void zero(Stream& stream, Tensor y) {
  std::byte* to = y.raw(stream);
  const auto bytes = static_cast<std::size_t>(y.bytes());
  enqueue_all(stream, "zero", WorkClass::Memory, [=](cudaStream_t handle) {
    if (bytes > 0) check("cudaMemsetAsync", cudaMemsetAsync(to, 0, bytes, handle));
  });
}

void fill(Stream& stream, Tensor y, std::int64_t value) {
  if (y.dtype() == DType::I32) {
    fill_with<std::int32_t>(stream, y, value);
  } else {
    fill_with<std::int64_t>(stream, y, value);
  }
}

void copy(Stream& stream, Tensor y, Tensor x) {
  if (y.dtype() == x.dtype()) {
    std::byte *to = y.raw(stream), *from = x.raw(stream);
    const auto bytes = static_cast<std::size_t>(y.bytes());
    enqueue_all(stream, "copy", WorkClass::Copy, [=](cudaStream_t handle) {
      if (bytes == 0) return;
      check("cudaMemcpyAsync", cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, handle));
    });
    return;
  }
  if (y.dtype() == DType::F32) {
    convert<float, BFloat16>(stream, y, x);
  } else {
    convert<BFloat16, float>(stream, y, x);
  }
}

}  // namespace weft::kernels::cuda
