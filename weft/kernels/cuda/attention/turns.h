// Pairs of a head that turn by the angles of their row's position, in units. A unit has one pair
// per element of a pack: two packs of the head, and one run of angles.
#pragma once

#include "weft/kernels/cuda/device/packs.h"
#include "weft/kernels/kernels.h"

namespace weft::kernels::cuda {

using Pairs = Rotary::Pairs;

inline constexpr float kForth = 1, kBack = -1;

// Values of a unit as a head stores them: one of its first half and one of its second, or two
// neighbours.
template <typename T>
struct Unit {
  float first[kPack<T>], second[kPack<T>];
};

// Packs of unit u in a head. Halves: they are counted in each half.
template <Access kAccess, typename T>
struct TurnedHead {
  T* data;
  std::int64_t half;  // 0: nothing to load or to store
  Pairs pairs;

  __device__ Unit<T> load(std::int64_t u) const {
    Unit<T> unit;
    const Pack<T> a = first().load(first_pack(u)), b = second().load(second_pack(u));
#pragma unroll
    for (int i = 0; i < kPack<T>; ++i) {
      unit.first[i] = a[i];
      unit.second[i] = b[i];
    }
    return unit;
  }
  __device__ void store(std::int64_t u, const Unit<T>& unit) const {
    first().store(first_pack(u), unit.first);
    second().store(second_pack(u), unit.second);
  }
  // Column of the head of value c of unit u, the second values behind the first; -1: none.
  __device__ std::int64_t column(std::int64_t u, int c) const {
    const bool is_first = c < kPack<T>;
    const std::int64_t pack = is_first ? first_pack(u) : second_pack(u);
    const std::int64_t at = pack * kPack<T> + c % kPack<T>;
    if (at >= first().width) return -1;
    return is_first || !halves() ? at : half + at;
  }

 private:
  __device__ bool halves() const { return pairs == Pairs::Halves; }
  __device__ Stretch<kAccess, T> first() const { return {data, halves() ? half : 2 * half}; }
  __device__ Stretch<kAccess, T> second() const {
    return halves() ? Stretch<kAccess, T>{data + half, half} : first();
  }
  __device__ std::int64_t first_pack(std::int64_t u) const { return halves() ? u : 2 * u; }
  __device__ std::int64_t second_pack(std::int64_t u) const { return halves() ? u : 2 * u + 1; }
};

template <typename T>
struct UnitAngles {
  float cosines[kPack<T>], sines[kPack<T>];
};

// Angles of unit u, from a row of the table: half cosines, then half sines.
template <Access kAccess, typename T>
__device__ UnitAngles<T> load_angles(const float* row, std::int64_t half, std::int64_t u) {
  UnitAngles<T> angles;
  const std::int64_t at = u * kPack<T>;
#pragma unroll
  for (int i = 0; i < kPack<T>; i += kPack<float>) {
    if constexpr (kAccess == Access::Packs) {
      const Pack<float> cosines = load_pack<kPack<float>>(row + at + i);
      const Pack<float> sines = load_pack<kPack<float>>(row + half + at + i);
#pragma unroll
      for (int j = 0; j < kPack<float>; ++j) {
        angles.cosines[i + j] = cosines[j];
        angles.sines[i + j] = sines[j];
      }
    } else {
#pragma unroll
      for (int j = 0; j < kPack<float>; ++j) {
        const std::int64_t angle = min(at + i + j, half - 1);
        angles.cosines[i + j] = row[angle];
        angles.sines[i + j] = row[half + angle];
      }
    }
  }
  return angles;
}

__device__ inline void turn_pair(float& x1, float& x2, float cosine, float sine) {
  const float turned = x1 * cosine - x2 * sine;
  x2 = x2 * cosine + x1 * sine;
  x1 = turned;
}

// `direction`: kForth or kBack.
template <typename T>
__device__ void turn_unit(Unit<T>& unit,
                          const UnitAngles<T>& angles,
                          Pairs pairs,
                          float direction) {
  constexpr int kMiddle = kPack<T> / 2;
  if (pairs == Pairs::Halves) {
#pragma unroll
    for (int i = 0; i < kPack<T>; ++i) {
      turn_pair(unit.first[i], unit.second[i], angles.cosines[i], direction * angles.sines[i]);
    }
    return;
  }
#pragma unroll
  for (int i = 0; i < kMiddle; ++i) {
    turn_pair(unit.first[2 * i],
              unit.first[2 * i + 1],
              angles.cosines[i],
              direction * angles.sines[i]);
    turn_pair(unit.second[2 * i],
              unit.second[2 * i + 1],
              angles.cosines[kMiddle + i],
              direction * angles.sines[kMiddle + i]);
  }
}

// True if heads of `half` pairs behind `unturned` channels are in whole units.
template <typename T>
bool in_units(const Matrix<T>& x, std::int64_t half, std::int64_t unturned) {
  return in_packs(x, half) && unturned % kPack<T> == 0;
}

}  // namespace weft::kernels::cuda
