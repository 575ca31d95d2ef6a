// Rotary embedding: each pair (x1, x2) of a head turns by its position's angle; the gradient turns
// back.
#include "weft/kernels/cuda/arguments.h"
#include "weft/kernels/cuda/operations.h"

namespace weft::kernels::cuda {
namespace {

constexpr int kThreads = 256;

enum class Turn { Forth, Back };

// A block takes whole rows, a thread whole pairs: y may be x.
template <typename T>
__global__ void turn_rows(Matrix<T> y,
                          Matrix<T> x,
                          Matrix<float> table,
                          Rotary rotary,
                          float sign) {
  const std::int64_t unturned = rotary.unturned, head = unturned + table.columns;
  const std::int64_t half = table.columns / 2, heads = x.columns / head;
  const bool halves = rotary.pairs == Rotary::Pairs::Halves;
  for (std::int64_t t = blockIdx.x; t < x.rows; t += gridDim.x) {
    const T* from = x.row(t);
    T* to = y.row(t);
    const float* cosines = table.row(t % table.rows);
    const float* sines = cosines + half;
    for (std::int64_t i = threadIdx.x; i < heads * half; i += blockDim.x) {
      const std::int64_t pair = i % half, at = i / half * head + unturned;
      const std::int64_t first = at + (halves ? pair : 2 * pair);
      const std::int64_t second = halves ? first + half : first + 1;
      const float x1 = load(from[first]), x2 = load(from[second]);
      const float c = cosines[pair], s = sign * sines[pair];
      store(to[first], x1 * c - x2 * s);
      store(to[second], x2 * c + x1 * s);
    }
    if (to == from) continue;
    for (std::int64_t i = threadIdx.x; i < heads * unturned; i += blockDim.x) {
      const std::int64_t at = i / unturned * head + i % unturned;
      to[at] = from[at];
    }
  }
}

void turn(Stream& stream,
          std::string_view name,
          const Tensor& y,
          const Tensor& x,
          const Tensor& table,
          const Rotary& rotary,
          Turn direction) {
  with_float(x.dtype(), [&]<typename T>(As<T>) {
    enqueue(stream,
            name,
            WorkClass::Memory,
            {blocks_for(x.dim(0), 1), kThreads},
            turn_rows<T>,
            matrix<T>(stream, y),
            matrix<T>(stream, x),
            matrix<float>(stream, table),
            rotary,
            direction == Turn::Forth ? 1.0f : -1.0f);
  });
}

}  // namespace

void rotary_forward(Stream& stream, Tensor y, Tensor x, Tensor table, const Rotary& rotary) {
  turn(stream, "rotary_forward", y, x, table, rotary, Turn::Forth);
}

void rotary_dgrad(Stream& stream, Tensor dx, Tensor dy, Tensor table, const Rotary& rotary) {
  turn(stream, "rotary_dgrad", dx, dy, table, rotary, Turn::Back);
}

}  // namespace weft::kernels::cuda
