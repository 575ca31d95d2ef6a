// Rotary embedding: each pair (x1, x2) of a head turns by its position's angle; the gradient turns
// back.
#include <algorithm>

#include "weft/kernels/cpu/arguments.h"
#include "weft/kernels/cpu/gemm/work_cut.h"
#include "weft/kernels/cpu/operations.h"

namespace weft::kernels::cpu {

namespace {

enum class Turn { Forth, Back };

template <Rotary::Pairs kPairs, typename T>
void turn_head(T* y, const T* x, const float* cosines, float sign, std::int64_t half) {
  constexpr bool kHalves = kPairs == Rotary::Pairs::Halves;
  const float* sines = cosines + half;
#pragma omp simd
  for (std::int64_t i = 0; i < half; ++i) {
    const std::int64_t first = kHalves ? i : 2 * i, second = kHalves ? i + half : 2 * i + 1;
    const float x1 = load(x[first]), x2 = load(x[second]);
    const float c = cosines[i], s = sign * sines[i];
    store(y[first], x1 * c - x2 * s);
    store(y[second], x2 * c + x1 * s);
  }
}

template <typename T>
struct Turning {
  Matrix<T> y, x;
  Matrix<float> angles;
  std::int64_t unturned;
  float sign;

  template <Rotary::Pairs kPairs>
  void turn_rows(Range rows) const {
    const std::int64_t before = unturned, head = unturned + angles.columns, all = x.columns;
    const std::int64_t half = angles.columns / 2;
    const float forth = sign;  // in a register: the stores below could alias `sign`
    for (std::int64_t t = rows.begin; t < rows.end; ++t) {
      const float* angle = angles.row(t % angles.rows);
      const T* from = x.row(t);
      T* to = y.row(t);
      if (to != from && before > 0) std::copy_n(from, all, to);
      for (std::int64_t at = before; at < all; at += head) {
        turn_head<kPairs>(to + at, from + at, angle, forth, half);
      }
    }
  }
};

void turn(Stream& stream,
          std::string_view name,
          const Tensor& y,
          const Tensor& x,
          const Tensor& table,
          const Rotary& rotary,
          Turn direction) {
  with_float(x.dtype(), [&]<typename T>(As<T>) {
    const Turning<T> job{.y = matrix<T>(stream, y),
                         .x = matrix<T>(stream, x),
                         .angles = matrix<float>(stream, table),
                         .unturned = rotary.unturned,
                         .sign = direction == Turn::Forth ? 1.0f : -1.0f};
    const bool halves = rotary.pairs == Rotary::Pairs::Halves;
    enqueue(stream, name, WorkClass::Memory, [=](Workers& workers) {
      parallel(workers, cut_rows(job.x.rows, job.x.columns), [&](Range range) {
        if (halves) {
          job.template turn_rows<Rotary::Pairs::Halves>(range);
        } else {
          job.template turn_rows<Rotary::Pairs::Neighbours>(range);
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

}  // namespace weft::kernels::cpu
