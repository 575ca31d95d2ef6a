#include <algorithm>

#include "weft/kernels/cpu/arguments.h"
#include "weft/kernels/cpu/operations.h"
#include "weft/kernels/cpu/work_cut.h"

namespace weft::kernels::cpu {

namespace {

template <typename To, typename From>
void convert(Stream& stream, const Tensor& y, const Tensor& x) {
  To* to = data<To>(stream, y);
  const From* from = data<From>(stream, x);
  const Cut cut = cut_elements(y.elements());
  enqueue(stream, "copy", WorkClass::Memory, [=](Workers& workers) {
    parallel(workers, cut, [&](Range range) {
#pragma omp simd
      for (std::int64_t i = range.begin; i < range.end; ++i) store(to[i], load(from[i]));
    });
  });
}

}  // namespace

void add(Stream& stream, Tensor y, Tensor a, Tensor b) {
  with_float(y.dtype(), [&]<typename T>(As<T>) {
    const T *as = data<T>(stream, a), *bs = data<T>(stream, b);
    T* ys = data<T>(stream, y);
    const Cut cut = cut_elements(y.elements());
    enqueue(stream, "add", WorkClass::Memory, [=](Workers& workers) {
      parallel(workers, cut, [&](Range range) {
#pragma omp simd
        for (std::int64_t i = range.begin; i < range.end; ++i)
          store(ys[i], load(as[i]) + load(bs[i]));
      });
    });
  });
}

void accumulate(Stream& stream, Tensor y, Tensor a) {
  const float* as = data<float>(stream, a);
  float* ys = data<float>(stream, y);
  const Cut cut = cut_elements(y.elements());
  enqueue(stream, "accumulate", WorkClass::Memory, [=](Workers& workers) {
    parallel(workers, cut, [&](Range range) {
#pragma omp simd
      for (std::int64_t i = range.begin; i < range.end; ++i) ys[i] += as[i];
    });
  });
}

void scale(Stream& stream, Tensor y, float factor) {
  float* ys = data<float>(stream, y);
  const Cut cut = cut_elements(y.elements());
  enqueue(stream, "scale", WorkClass::Memory, [=](Workers& workers) {
    parallel(workers, cut, [&](Range range) {
#pragma omp simd
      for (std::int64_t i = range.begin; i < range.end; ++i) ys[i] *= factor;
    });
  });
}

void zero(Stream& stream, Tensor y) {
  std::byte* ys = raw(stream, y);
  const Cut cut{y.bytes(), 4 * kElementsPerTask};
  enqueue(stream, "zero", WorkClass::Memory, [=](Workers& workers) {
    parallel(workers, cut, [&](Range range) {
      std::fill_n(ys + range.begin, range.size(), std::byte{0});
    });
  });
}

void fill(Stream& stream, Tensor y, std::int64_t value) {
  const auto fill_with = [&]<typename T>(As<T>) {
    T* ys = data<T>(stream, y);
    const Cut cut = cut_elements(y.elements());
    enqueue(stream, "fill", WorkClass::Memory, [=](Workers& workers) {
      parallel(workers, cut, [&](Range range) {
        std::fill_n(ys + range.begin, range.size(), static_cast<T>(value));
      });
    });
  };
  y.dtype() == tensor::DType::I32 ? fill_with(As<std::int32_t>{}) : fill_with(As<std::int64_t>{});
}

void copy(Stream& stream, Tensor y, Tensor x) {
  if (y.dtype() == x.dtype()) {
    std::byte *to = raw(stream, y), *from = raw(stream, x);
    const Cut cut{y.bytes(), 4 * kElementsPerTask};
    enqueue(stream, "copy", WorkClass::Copy, [=](Workers& workers) {
      parallel(workers, cut, [&](Range range) {
        std::copy_n(from + range.begin, range.size(), to + range.begin);
      });
    });
    return;
  }
  if (y.dtype() == DType::F32) {
    convert<float, BFloat16>(stream, y, x);
  } else {
    convert<BFloat16, float>(stream, y, x);
  }
}

}  // namespace weft::kernels::cpu
