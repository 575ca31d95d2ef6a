#include <algorithm>

#include "weft/kernels/cpu/arguments.h"
#include "weft/kernels/cpu/work_cut.h"
#include "weft/kernels/kernels.h"

namespace weft::kernels {

using namespace cpu;

namespace {

void check_like(std::string_view name, const Tensor& x, const Tensor& y) {
  CHECK(x.shape() == y.shape(),
        "{} is {}, should be {}",
        name,
        x.shape().print(),
        y.shape().print());
  check_contiguous(name, x);
  check_contiguous("y", y);
}

template <typename To, typename From>
void convert(Stream& stream, const Tensor& y, const Tensor& x) {
  To* to = y.data<To>(stream);
  const From* from = x.data<From>(stream);
  const Cut cut = cut_elements(y.elements());
  stream.enqueue("copy", WorkClass::Memory, [=](Workers& workers) {
    parallel(workers, cut, [&](Range range) {
#pragma omp simd
      for (std::int64_t i = range.begin; i < range.end; ++i) store(to[i], load(from[i]));
    });
  });
}

}  // namespace

void add(Stream& stream, Tensor y, Tensor a, Tensor b) {
  check_like("a", a, y);
  check_like("b", b, y);
  with_float(y.dtype(), [&]<typename T>(As<T>) {
    const T *as = a.data<T>(stream), *bs = b.data<T>(stream);
    T* ys = y.data<T>(stream);
    const Cut cut = cut_elements(y.elements());
    stream.enqueue("add", WorkClass::Memory, [=](Workers& workers) {
      parallel(workers, cut, [&](Range range) {
#pragma omp simd
        for (std::int64_t i = range.begin; i < range.end; ++i)
          store(ys[i], load(as[i]) + load(bs[i]));
      });
    });
  });
}

void accumulate(Stream& stream, Tensor y, Tensor a) {
  check_like("a", a, y);
  const float* as = a.data<float>(stream);
  float* ys = y.data<float>(stream);
  const Cut cut = cut_elements(y.elements());
  stream.enqueue("accumulate", WorkClass::Memory, [=](Workers& workers) {
    parallel(workers, cut, [&](Range range) {
#pragma omp simd
      for (std::int64_t i = range.begin; i < range.end; ++i) ys[i] += as[i];
    });
  });
}

void scale(Stream& stream, Tensor y, float factor) {
  check_contiguous("y", y);
  float* ys = y.data<float>(stream);
  const Cut cut = cut_elements(y.elements());
  stream.enqueue("scale", WorkClass::Memory, [=](Workers& workers) {
    parallel(workers, cut, [&](Range range) {
#pragma omp simd
      for (std::int64_t i = range.begin; i < range.end; ++i) ys[i] *= factor;
    });
  });
}

void zero(Stream& stream, Tensor y) {
  std::byte* ys = y.raw(stream);
  const Cut cut{y.bytes(), 4 * kElementsPerTask};
  stream.enqueue("zero", WorkClass::Memory, [=](Workers& workers) {
    parallel(workers, cut, [&](Range range) {
      std::fill_n(ys + range.begin, range.size(), std::byte{0});
    });
  });
}

void fill(Stream& stream, Tensor y, std::int64_t value) {
  check_contiguous("y", y);
  const auto enqueue = [&]<typename T>(As<T>) {
    T* ys = y.data<T>(stream);
    const Cut cut = cut_elements(y.elements());
    stream.enqueue("fill", WorkClass::Memory, [=](Workers& workers) {
      parallel(workers, cut, [&](Range range) {
        std::fill_n(ys + range.begin, range.size(), static_cast<T>(value));
      });
    });
  };
  y.dtype() == tensor::DType::I32 ? enqueue(As<std::int32_t>{}) : enqueue(As<std::int64_t>{});
}

void copy(Stream& stream, Tensor y, Tensor x) {
  check_like("x", x, y);
  if (y.dtype() == x.dtype()) {
    std::byte *to = y.raw(stream), *from = x.raw(stream);
    const Cut cut{y.bytes(), 4 * kElementsPerTask};
    stream.enqueue("copy", WorkClass::Copy, [=](Workers& workers) {
      parallel(workers, cut, [&](Range range) {
        std::copy_n(from + range.begin, range.size(), to + range.begin);
      });
    });
    return;
  }
  check_float("x", x);
  check_float("y", y);
  if (y.dtype() == DType::F32) {
    convert<float, BFloat16>(stream, y, x);
  } else {
    convert<BFloat16, float>(stream, y, x);
  }
}

}  // namespace weft::kernels
