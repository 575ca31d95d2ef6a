#include <algorithm>

#include "weft/kernels/cpu/arguments.h"
#include "weft/kernels/cpu/gemm/work_cut.h"
#include "weft/kernels/cpu/operations.h"

namespace weft::kernels::cpu {

namespace {

enum class Contiguous { No, Yes };

// A contiguous tensor as one row, any other tensor as its rows.
template <typename T>
Matrix<T> lines(Stream& stream, const Tensor& x, Contiguous whole) {
  if (whole == Contiguous::No) return matrix<T>(stream, x);
  return {data<T>(stream, x), 1, x.elements(), x.elements()};
}

template <typename To, typename From>
void convert(Stream& stream, const Tensor& y, const Tensor& x) {
  const Contiguous whole = y.contiguous() && x.contiguous() ? Contiguous::Yes : Contiguous::No;
  const Matrix<To> to = lines<To>(stream, y, whole);
  const Matrix<From> from = lines<From>(stream, x, whole);
  enqueue(stream, "copy", WorkClass::Memory, [=](Workers& workers) {
    const auto copy_columns = [&](std::int64_t r, Range range) {
      To* ys = to.row(r);
      const From* xs = from.row(r);
#pragma omp simd
      for (std::int64_t i = range.begin; i < range.end; ++i) store(ys[i], load(xs[i]));
    };
    if (to.rows == 1) {
      parallel(workers, cut_elements(to.columns), [&](Range range) { copy_columns(0, range); });
      return;
    }
    parallel(workers, cut_rows(to.rows, to.columns), [&](Range rows) {
      for (std::int64_t r = rows.begin; r < rows.end; ++r) copy_columns(r, {0, to.columns});
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
  with_float(y.dtype(), [&]<typename T>(As<T>) {
    const float* as = data<float>(stream, a);
    T* ys = data<T>(stream, y);
    const Cut cut = cut_elements(y.elements());
    enqueue(stream, "accumulate", WorkClass::Memory, [=](Workers& workers) {
      parallel(workers, cut, [&](Range range) {
#pragma omp simd
        for (std::int64_t i = range.begin; i < range.end; ++i) store(ys[i], load(ys[i]) + as[i]);
      });
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
  if (y.dtype() == x.dtype() && !(y.contiguous() && x.contiguous())) {
    const RowBlock all{.from = 0, .to = 0, .rows = y.dim(0)};
    return copy_rows(stream, std::move(y), std::move(x), {&all, 1});
  }
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
