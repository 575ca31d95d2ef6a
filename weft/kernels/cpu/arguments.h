// Arguments of CPU tasks: plain views of memory that a task captures by value. A task never
// captures a Tensor: its memory returns to the pool in issue order, before the task has run.
// kernels/checks.h has checked what holds on every device; a task raises a fault for what only it
// sees.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "weft/base/check.h"
#include "weft/kernels/checks.h"
#include "weft/tensor/cpu/stream.h"
#include "weft/tensor/tensor.h"

namespace weft::kernels::cpu {

using tensor::BFloat16;
using tensor::DType;
using tensor::Stream;
using tensor::Tensor;
using tensor::WorkClass;

using tensor::FaultCode;
using tensor::cpu::cpu_stream;
using tensor::cpu::Workers;

inline void enqueue(Stream& stream,
                    std::string_view name,
                    WorkClass kind,
                    tensor::cpu::Task task,
                    tensor::WorkSize size = {}) {
  cpu_stream(stream).enqueue(name, kind, std::move(task), size);
}

// Memory of a tensor, as a task addresses it.
template <typename T>
T* data(Stream& stream, const Tensor& x) {
  return cpu_stream(stream).cpu().reach(x.data<T>(stream));
}
inline std::byte* raw(Stream& stream, const Tensor& x) {
  return cpu_stream(stream).cpu().reach(x.raw(stream));
}

// Fault reports of the next enqueued task. A task that raises a fault goes on without the bad
// element.
class Faults {
 public:
  explicit Faults(Stream& stream)
      : word_(&cpu_stream(stream).fault()), ticket_(stream.next_ticket()) {}

  void raise(FaultCode code, std::initializer_list<std::int64_t> numbers) const {
    tensor::raise(*word_, ticket_, code, numbers);
  }
  void raise(const tensor::Fault& fault) const {
    const auto& n = fault.numbers;
    static_assert(tensor::Fault::kNumbers == 6);
    raise(fault.code, {n[0], n[1], n[2], n[3], n[4], n[5]});
  }

 private:
  tensor::FaultWord* word_;
  std::uint64_t ticket_;
};

template <typename T>
struct Matrix {
  T* data = nullptr;
  std::int64_t rows = 0, columns = 0;
  std::int64_t stride = 0;  // elements between rows

  T* row(std::int64_t i) const { return data + i * stride; }
};

template <typename T>
Matrix<T> matrix(Stream& stream, const Tensor& x) {
  return {data<T>(stream, x), x.dim(0), x.dim(1), x.row_stride()};
}

// Memory of a tensor of any dtype, strided or not.
inline std::byte* bytes_of(Stream& stream, const Tensor& x) {
  return cpu_stream(stream).cpu().reach(x.first_byte(stream));
}

// A type as a value, for the functions below.
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

inline float load(float x) { return x; }
inline float load(BFloat16 x) { return static_cast<float>(x); }
inline void store(float& to, float x) { to = x; }
// Stores bits: copies of the struct keep g++ from vectorising.
inline void store(BFloat16& to, float x) { to.bits = BFloat16(x).bits; }

// Sum of a[i] * b[i] in fp32.
template <typename T>
float dot(const T* a, const T* b, std::int64_t n) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) sum += load(a[i]) * load(b[i]);
  return sum;
}

}  // namespace weft::kernels::cpu
