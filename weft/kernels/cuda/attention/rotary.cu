// Rotary embedding: each pair (x1, x2) of a head turns by its position's angle; the gradient turns
// back.
#include "weft/kernels/cuda/attention/turns.h"
#include "weft/kernels/cuda/device/operations.h"

namespace weft::kernels::cuda {
namespace rotary_kernels {
namespace {

constexpr int kThreads = 256;

// Items of a head's threads, one after another: units that turn, then packs of channels before them
// that do not (none if they are in place already).
struct HeadItems {
  std::int64_t heads, units, copies;

  __host__ __device__ std::int64_t all() const { return units + copies; }
};

// y may be x: a thread has whole pairs.
template <Access kAccess, typename T>
__global__ void turn_heads(Matrix<T> y,
                           Matrix<T> x,
                           Matrix<float> table,
                           Rotary rotary,
                           HeadItems items,
                           float direction) {
  const std::int64_t half = table.columns / 2, width = rotary.unturned + table.columns;
  const std::int64_t all = x.rows * items.heads * items.all();
  for (std::int64_t i = first_index(); i < all; i += index_step()) {
    const std::int64_t head = i / items.all(), item = i % items.all();
    const std::int64_t t = head / items.heads, at = head % items.heads * width;
    T *from = x.row(t) + at, *to = y.row(t) + at;
    if (item < items.units) {
      const TurnedHead<kAccess, T> source{from + rotary.unturned, half, rotary.pairs};
      const TurnedHead<kAccess, T> target{to + rotary.unturned, half, rotary.pairs};
      Unit<T> unit = source.load(item);
      const float* angles = table.row(t % table.rows);
      turn_unit(unit, load_angles<kAccess, T>(angles, half, item), rotary.pairs, direction);
      target.store(item, unit);
    } else {
      const std::int64_t p = item - items.units;
      const Pack<T> pack = Stretch<kAccess, T>{from, rotary.unturned}.load(p);
      float values[kPack<T>];
#pragma unroll
      for (int c = 0; c < kPack<T>; ++c) values[c] = pack[c];
      Stretch<kAccess, T>{to, rotary.unturned}.store(p, values);
    }
  }
}

void turn(Stream& stream,
          std::string_view name,
          const Tensor& y,
          const Tensor& x,
          const Tensor& table,
          const Rotary& rotary,
          float direction) {
  with_float(x.dtype(), [&]<typename T>(As<T>) {
    const Matrix<T> ys = matrix<T>(stream, y), xs = matrix<T>(stream, x);
    const Matrix<float> angles = matrix<float>(stream, table);
    const std::int64_t half = angles.columns / 2, unturned = rotary.unturned;
    const bool in_place = ys.data == xs.data && ys.stride == xs.stride;
    const HeadItems items{.heads = xs.columns / (unturned + angles.columns),
                          .units = divided_up(half, kPack<T>),
                          .copies = in_place ? 0 : divided_up(unturned, kPack<T>)};
    const bool whole =
        in_units(ys, half, unturned) && in_units(xs, half, unturned) && starts_pack(angles.data);
    enqueue(stream,
            name,
            WorkClass::Memory,
            {blocks_for(xs.rows * items.heads * items.all(), kThreads), kThreads},
            whole ? turn_heads<Access::Packs, T> : turn_heads<Access::Elements, T>,
            ys,
            xs,
            angles,
            rotary,
            items,
            direction);
  });
}

}  // namespace
}  // namespace rotary_kernels

void rotary_forward(Stream& stream, Tensor y, Tensor x, Tensor table, const Rotary& rotary) {
  rotary_kernels::turn(stream, "rotary_forward", y, x, table, rotary, kForth);
}

void rotary_dgrad(Stream& stream, Tensor dx, Tensor dy, Tensor table, const Rotary& rotary) {
  rotary_kernels::turn(stream, "rotary_dgrad", dx, dy, table, rotary, kBack);
}

}  // namespace weft::kernels::cuda
