// Rotary embedding: each pair (x1, x2) of a head turns by its position's angle; the gradient turns
// back.
#include <algorithm>

#include "weft/kernels/cpu/arguments.h"
#include "weft/kernels/cpu/work_cut.h"
#include "weft/kernels/kernels.h"

namespace weft::kernels {

using namespace cpu;

namespace {

enum class Turn { Forth, Back };

template <typename T>
void turn_halves(T* y, const T* x, const float* cosines, float sign, std::int64_t half) {
  const float* sines = cosines + half;
#pragma omp simd
  for (std::int64_t i = 0; i < half; ++i) {
    const float x1 = load(x[i]), x2 = load(x[i + half]);
    const float c = cosines[i], s = sign * sines[i];
    store(y[i], x1 * c - x2 * s);
    store(y[i + half], x2 * c + x1 * s);
  }
}

template <typename T>
void turn_neighbours(T* y, const T* x, const float* cosines, float sign, std::int64_t half) {
  const float* sines = cosines + half;
#pragma omp simd
  for (std::int64_t i = 0; i < half; ++i) {
    const float x1 = load(x[2 * i]), x2 = load(x[2 * i + 1]);
    const float c = cosines[i], s = sign * sines[i];
    store(y[2 * i], x1 * c - x2 * s);
    store(y[2 * i + 1], x2 * c + x1 * s);
  }
}

void turn(Stream& stream,
          std::string_view name,
          const Tensor& y,
          const Tensor& x,
          const Tensor& table,
          const Rotary& rotary,
          Turn direction) {
  const auto [rows, columns] = matrix_shape("x", x);
  const auto [positions, width] = matrix_shape("table", table);
  check_matrix("y", y, rows, columns);
  check_dtype("y", y, x.dtype());
  check_dtype("table", table, DType::F32);
  check_contiguous("table", table);
  const std::int64_t unturned = rotary.unturned, head = unturned + width;
  CHECK(width > 0 && width % 2 == 0 && unturned >= 0 && columns % head == 0,
        "{} columns in heads of {}, the last {} of which turn",
        columns,
        head,
        width);
  CHECK(positions > 0 || rows == 0, "no positions for {} rows", rows);
  with_float(x.dtype(), [&]<typename T>(As<T>) {
    const Matrix<T> xs = matrix<T>(stream, x), ys = matrix<T>(stream, y);
    const Matrix<float> angles = matrix<float>(stream, table);
    const float sign = direction == Turn::Forth ? 1.0f : -1.0f;
    const auto turn_head =
        rotary.pairs == Rotary::Pairs::Halves ? turn_halves<T> : turn_neighbours<T>;
    stream.enqueue(name, WorkClass::Memory, [=](Workers& workers) {
      parallel(workers, cut_rows(xs.rows, xs.columns), [&](Range range) {
        for (std::int64_t t = range.begin; t < range.end; ++t) {
          const float* angle = angles.row(t % angles.rows);
          for (std::int64_t at = 0; at < xs.columns; at += head) {
            const T* from = xs.row(t) + at;
            T* to = ys.row(t) + at;
            if (to != from) std::copy_n(from, unturned, to);
            turn_head(to + unturned, from + unturned, angle, sign, angles.columns / 2);
          }
        }
      });
    });
  });
}

}  // namespace

void rotary_forward(Stream& stream, Tensor y, Tensor x, Tensor table, const Rotary& rotary) {
  turn(stream, "rotary_forward", y, x, table, rotary, Turn::Forth);
}

void rotary_dgrad(Stream& stream, Tensor dx, Tensor dy, Tensor table, const Rotary& rotary) {
  turn(stream, "rotary_dgrad", dx, dy, table, rotary, Turn::Back);
}

}  // namespace weft::kernels
