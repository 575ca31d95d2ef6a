#include "weft/base/random.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>
#include <utility>

#include "weft/base/check.h"

namespace weft::base {
namespace {

struct Wide {
  std::uint32_t high, low;
};

Wide multiply(std::uint32_t a, std::uint32_t b) {
  const std::uint64_t product = std::uint64_t{a} * b;
  return {static_cast<std::uint32_t>(product >> 32), static_cast<std::uint32_t>(product)};
}

}  // namespace

std::array<std::uint32_t, 4> philox(std::uint64_t key,
                                    std::uint64_t counter_low,
                                    std::uint64_t counter_high) {
  std::array<std::uint32_t, 4> x{static_cast<std::uint32_t>(counter_low),
                                 static_cast<std::uint32_t>(counter_low >> 32),
                                 static_cast<std::uint32_t>(counter_high),
                                 static_cast<std::uint32_t>(counter_high >> 32)};
  auto k0 = static_cast<std::uint32_t>(key);
  auto k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const Wide a = multiply(0xD2511F53u, x[0]);
    const Wide b = multiply(0xCD9E8D57u, x[2]);
    x = {b.high ^ x[1] ^ k0, b.low, a.high ^ x[3] ^ k1, a.low};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return x;
}

std::uint64_t hash(std::string_view text) {
  std::uint64_t h = 0xcbf29ce484222325ull;
  for (const char c : text) {
    h ^= static_cast<unsigned char>(c);
    h *= 0x100000001b3ull;
  }
  return h;
}

std::uint64_t combine(std::uint64_t a, std::uint64_t b) {
  const auto x = philox(a, b, 0);
  return (std::uint64_t{x[0]} << 32) | x[1];
}

double uniform(std::uint64_t key, std::uint64_t i) {
  const auto x = philox(key, i, 0);
  return static_cast<double>(((std::uint64_t{x[0]} << 32) | x[1]) >> 11) * 0x1p-53;
}

double normal(std::uint64_t key, std::uint64_t i) {
  // Box-Muller; 1 - u lies in (0, 1], so that the logarithm is finite.
  const auto x = philox(key, i, 0);
  const double u = static_cast<double>(((std::uint64_t{x[0]} << 32) | x[1]) >> 11) * 0x1p-53;
  const double v = static_cast<double>(((std::uint64_t{x[2]} << 32) | x[3]) >> 11) * 0x1p-53;
  return std::sqrt(-2 * std::log(1 - u)) * std::cos(2 * std::numbers::pi * v);
}

void normals(std::uint64_t key, std::uint64_t first, std::span<float> out) {
  std::uint64_t block = first / 4;
  std::size_t skip = first % 4;
  for (std::size_t done = 0; done < out.size(); ++block) {
    const auto x = philox(key, block, 1);
    std::array<float, 4> drawn{};
    for (std::size_t pair = 0; pair < 4; pair += 2) {
      // Box-Muller on (0, 1] and [0, 1).
      const float u = (static_cast<float>(x[pair] >> 8) + 1) * 0x1p-24f;
      const float angle =
          static_cast<float>(x[pair + 1] >> 8) * 0x1p-24f * 2 * std::numbers::pi_v<float>;
      const float radius = std::sqrt(-2 * std::log(u));
      drawn[pair] = radius * std::cos(angle);
      drawn[pair + 1] = radius * std::sin(angle);
    }
    for (std::size_t i = skip; i < 4 && done < out.size(); ++i) out[done++] = drawn[i];
    skip = 0;
  }
}

std::uint64_t permute(std::uint64_t key, std::uint64_t i, std::uint64_t size) {
  CHECK(size >= 1 && i < size, "permute: index {} of {}", i, size);
  // Four-round Feistel network over the next even power of two, iterated until the result is below
  // `size`.
  const int half = std::max(1, (static_cast<int>(std::bit_width(size - 1)) + 1) / 2);
  const std::uint64_t mask = (std::uint64_t{1} << half) - 1;
  do {
    std::uint64_t left = i >> half, right = i & mask;
    for (std::uint64_t round = 0; round < 4; ++round) {
      const std::uint64_t mixed = philox(key, right, round + 1)[0] & mask;
      left ^= mixed;
      std::swap(left, right);
    }
    i = (left << half) | right;
  } while (i >= size);
  return i;
}

}  // namespace weft::base
