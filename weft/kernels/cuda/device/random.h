// Draws of base/random.h inside a kernel. Integers are the same. Numbers made of them differ at
// most in the last bit of a logarithm, a cosine or a sine.
#pragma once

#include <cstdint>
#include <numbers>

namespace weft::kernels::cuda {

struct Draw {
  std::uint32_t x[4];
};

__device__ inline Draw philox(std::uint64_t key,
                              std::uint64_t counter_low,
                              std::uint64_t counter_high) {
  Draw draw{{std::uint32_t(counter_low),
             std::uint32_t(counter_low >> 32),
             std::uint32_t(counter_high),
             std::uint32_t(counter_high >> 32)}};
  auto k0 = std::uint32_t(key), k1 = std::uint32_t(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53u} * draw.x[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57u} * draw.x[2];
    draw = {{std::uint32_t(b >> 32) ^ draw.x[1] ^ k0,
             std::uint32_t(b),
             std::uint32_t(a >> 32) ^ draw.x[3] ^ k1,
             std::uint32_t(a)}};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return draw;
}

// As base::uniform.
__device__ inline double uniform(std::uint64_t key, std::uint64_t i) {
  const Draw draw = philox(key, i, 0);
  return double(((std::uint64_t{draw.x[0]} << 32) | draw.x[1]) >> 11) * 0x1p-53;
}

// Element i of the row of base::normals. Functions are evaluated in fp64 and rounded: the host's
// fp32 library nearly always gives that, CUDA's own does not.
__device__ inline float normal_at(std::uint64_t key, std::uint64_t i) {
  const Draw draw = philox(key, i / 4, 1);
  const bool second = i % 4 >= 2;
  const std::uint32_t a = second ? draw.x[2] : draw.x[0], b = second ? draw.x[3] : draw.x[1];
  const float u = (float(a >> 8) + 1) * 0x1p-24f;
  const float angle = float(b >> 8) * 0x1p-24f * 2 * std::numbers::pi_v<float>;
  const float radius = sqrtf(-2 * float(log(double(u))));
  const double turn = i % 2 == 0 ? cos(double(angle)) : sin(double(angle));
  return radius * float(turn);
}

}  // namespace weft::kernels::cuda
