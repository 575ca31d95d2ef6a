// Rotary embedding: each pair (x1, x2) of a head turns by its position's angle; the gradient turns
// back.
#include <cmath>

#include "weft/kernels/cpu/arguments.h"
#include "weft/kernels/cpu/work_cut.h"
#include "weft/kernels/kernels.h"

namespace weft::kernels {

using namespace cpu;

namespace {

enum class Turn { Forth, Back };

template <typename T>
void turn_head(T* y, const T* x, const float* cosines, float sign, std::int64_t half) {
  const float* sines = cosines + half;
#pragma omp simd
  for (std::int64_t i = 0; i < half; ++i) {
    const float x1 = load(x[i]), x2 = load(x[i + half]);
    const float c = cosines[i], s = sign * sines[i];
    store(y[i], x1 * c - x2 * s);
    store(y[i + half], x2 * c + x1 * s);
  }
}

void turn(Stream& stream,
          std::string_view name,
          const Tensor& y,
          const Tensor& x,
          const Tensor& table,
          Turn direction) {
  const auto [rows, columns] = matrix_shape("x", x);
  const auto [positions, width] = matrix_shape("table", table);
  check_matrix("y", y, rows, columns);
  check_dtype("y", y, x.dtype());
  check_dtype("table", table, DType::F32);
  check_contiguous("table", table);
  CHECK(width > 0 && width % 2 == 0 && columns % width == 0,
        "heads of {} columns of {}",
        width,
        columns);
  CHECK(positions > 0 || rows == 0, "no positions for {} rows", rows);
  with_float(x.dtype(), [&]<typename T>(As<T>) {
    const Matrix<T> xs = matrix<T>(stream, x), ys = matrix<T>(stream, y);
    const Matrix<float> angles = matrix<float>(stream, table);
    const float sign = direction == Turn::Forth ? 1.0f : -1.0f;
    stream.enqueue(name, WorkClass::Memory, [=](Workers& workers) {
      parallel(workers, cut_rows(xs.rows, xs.columns), [&](Range range) {
        for (std::int64_t t = range.begin; t < range.end; ++t) {
          const float* angle = angles.row(t % angles.rows);
          for (std::int64_t at = 0; at < xs.columns; at += angles.columns) {
            turn_head(ys.row(t) + at, xs.row(t) + at, angle, sign, angles.columns / 2);
          }
        }
      });
    });
  });
}

}  // namespace

void rotary_table(Stream& stream, Tensor table, double base) {
  const auto [positions, width] = matrix_shape("table", table);
  CHECK(width % 2 == 0, "heads of {} columns", width);
  check_dtype("table", table, DType::F32);
  check_contiguous("table", table);
  const Matrix<float> angles = matrix<float>(stream, table);
  stream.enqueue("rotary_table", WorkClass::Memory, [=](Workers& workers) {
    const std::int64_t half = angles.columns / 2;
    parallel(workers, cut_rows(angles.rows, angles.columns), [&](Range rows) {
      for (std::int64_t i = 0; i < half; ++i) {
        const double step = std::pow(base, -static_cast<double>(i) / static_cast<double>(half));
        for (std::int64_t s = rows.begin; s < rows.end; ++s) {
          const double angle = static_cast<double>(s) * step;
          angles.row(s)[i] = static_cast<float>(std::cos(angle));
          angles.row(s)[i + half] = static_cast<float>(std::sin(angle));
        }
      }
    });
  });
}

void rotary_forward(Stream& stream, Tensor y, Tensor x, Tensor table) {
  turn(stream, "rotary_forward", y, x, table, Turn::Forth);
}

void rotary_dgrad(Stream& stream, Tensor dx, Tensor dy, Tensor table) {
  turn(stream, "rotary_dgrad", dx, dy, table, Turn::Back);
}

}  // namespace weft::kernels
