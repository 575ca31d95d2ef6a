// Arguments of the GPU operations: plain views of device memory, passed to kernels by value.
// kernels/checks.h has checked what holds on every device. A kernel raises a fault for what only it
// can see.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "weft/base/check.h"
#include "weft/tensor/cuda/launch.h"
#include "weft/tensor/fault.h"
#include "weft/tensor/tensor.h"

namespace weft::kernels::cuda {

using tensor::DType;
using tensor::FaultCode;
using tensor::Stream;
using tensor::Tensor;
using tensor::WorkClass;

using BFloat16 = __nv_bfloat16;  // bit-identical to tensor::BFloat16

// Dtype of a tensor for a kernel's element type.
template <typename T>
struct HostType {
  using type = T;
};
template <>
struct HostType<BFloat16> {
  using type = tensor::BFloat16;
};

template <typename T>
T* data(Stream& stream, const Tensor& x) {
  return reinterpret_cast<T*>(x.data<typename HostType<T>::type>(stream));
}
// Data of a tensor; nullptr: it is undefined, an argument that may be left out.
template <typename T>
T* data_or_null(Stream& stream, const Tensor& x) {
  return x.defined() ? data<T>(stream, x) : nullptr;
}
// Memory of a tensor of any dtype, strided or not.
inline std::byte* bytes_of(Stream& stream, const Tensor& x) { return x.first_byte(stream); }

template <typename T>
struct Matrix {
  T* data = nullptr;
  std::int64_t rows = 0, columns = 0;
  std::int64_t stride = 0;  // elements from one row to the next

  __host__ __device__ T* row(std::int64_t i) const { return data + i * stride; }
};

template <typename T>
Matrix<T> matrix(Stream& stream, const Tensor& x) {
  return {data<T>(stream, x), x.dim(0), x.dim(1), x.row_stride()};
}

// Type as a value.
template <typename T>
struct As {
  using type = T;
};

// Calls body(As<float>) or body(As<BFloat16>).
template <typename Body>
void with_float(DType dtype, Body&& body) {
  CHECK(dtype == DType::F32 || dtype == DType::BF16, "dtype {}", tensor::name_of(dtype));
  if (dtype == DType::F32) {
    body(As<float>{});
  } else {
    body(As<BFloat16>{});
  }
}

__device__ inline float load(float x) { return x; }
__device__ inline float load(BFloat16 x) { return __bfloat162float(x); }
__device__ inline void store(float& to, float x) { to = x; }
__device__ inline void store(BFloat16& to, float x) { to = __float2bfloat16_rn(x); }

// Error word for a kernel that finds wrong data. The kernel then goes on without touching memory
// that is not its own. Belongs to the work that is enqueued next.
class Faults {
 public:
  explicit Faults(Stream& stream) : place_(tensor::cuda::fault_place(stream)) {}

  template <typename... Numbers>
  __device__ void raise(FaultCode code, Numbers... numbers) const {
    static_assert(sizeof...(numbers) <= tensor::Fault::kNumbers);
    auto* state = reinterpret_cast<unsigned long long*>(&place_.word->state);
    constexpr auto kFree = static_cast<unsigned long long>(tensor::FaultWord::Free);
    constexpr auto kTaken = static_cast<unsigned long long>(tensor::FaultWord::Taken);
    // The first fault counts. Only work of this card writes there: the host's memory need not take
    // part in atomic operations of a card.
    if (atomicCAS(state, kFree, kTaken) != kFree) return;
    place_.word->fault.code = code;
    place_.word->fault.ticket = place_.ticket;
    auto* out = reinterpret_cast<std::int64_t*>(&place_.word->fault.numbers);
    ((*out++ = static_cast<std::int64_t>(numbers)), ...);
    __threadfence_system();
    *reinterpret_cast<volatile std::int64_t*>(state) = tensor::FaultWord::Told;
  }

 private:
  tensor::cuda::FaultPlace place_;
};

constexpr std::int64_t divided_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// Number of blocks of `threads` for `elements`, bounded: beyond it a kernel with a stride loop
// gains nothing.
inline unsigned blocks_for(std::int64_t elements, int threads) {
  constexpr std::int64_t kMost = 132 * 16;
  const std::int64_t wanted = divided_up(elements, threads);
  return static_cast<unsigned>(wanted < kMost ? wanted : kMost);
}

// Elements of a thread in such a grid: for (i = first_index(); i < n; i += index_step()).
__device__ inline std::int64_t first_index() {
  return std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ inline std::int64_t index_step() { return std::int64_t(gridDim.x) * blockDim.x; }

struct Grid {
  dim3 blocks;
  dim3 threads;
  std::size_t shared = 0;  // bytes of dynamic shared memory; above 48 KiB see shared_memory.h
};

// Several kernels as one piece of work. launch(handle) hands them to the CUDA stream, now or later,
// and keeps by value what it needs.
template <typename Launch>
void enqueue_all(Stream& stream,
                 std::string_view name,
                 WorkClass kind,
                 const Launch& launch,
                 const tensor::WorkSize& size = {}) {
  tensor::cuda::enqueue(stream, name, kind, tensor::cuda::LaunchOf<Launch>(launch), size);
}

// Kernel with its arguments. No blocks: nothing is launched.
template <typename... Parameters>
class KernelLaunch final : public tensor::cuda::Launch {
 public:
  KernelLaunch(const Grid& grid, void (*kernel)(Parameters...), const Parameters&... parameters)
      : grid_(grid), kernel_(kernel), parameters_(parameters...) {}

  void operator()(cudaStream_t handle) const override {
    if (grid_.blocks.x * grid_.blocks.y * grid_.blocks.z == 0) return;
    std::apply(
        [&](const Parameters&... each) {
          kernel_<<<grid_.blocks, grid_.threads, grid_.shared, handle>>>(each...);
        },
        parameters_);
  }
  std::unique_ptr<const Launch> kept() const override {
    return std::unique_ptr<const Launch>(new KernelLaunch(*this));
  }

 private:
  Grid grid_;
  void (*kernel_)(Parameters...);
  std::tuple<Parameters...> parameters_;
};

// One kernel as one piece of work.
template <typename... Parameters>
void enqueue(Stream& stream,
             std::string_view name,
             WorkClass kind,
             const Grid& grid,
             void (*kernel)(Parameters...),
             const std::type_identity_t<Parameters>&... arguments) {
  tensor::cuda::enqueue(stream,
                        name,
                        kind,
                        KernelLaunch<Parameters...>(grid, kernel, arguments...));
}

// Scratch memory of one piece of work between its kernels. It is the stream's own, at most
// tensor::cuda::kWorkspaceBytes. The next work of the stream overwrites it.
template <typename T>
T* scratch(Stream& stream, std::int64_t elements) {
  return reinterpret_cast<T*>(tensor::cuda::workspace(stream, elements * std::int64_t(sizeof(T))));
}

}  // namespace weft::kernels::cuda
