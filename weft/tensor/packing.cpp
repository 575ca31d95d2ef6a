#include "weft/tensor/packing.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace weft::tensor {
namespace {

// How long ago a buffer must have been given back before a stream that does not know of its last
// use gets its memory: from never to at once.
constexpr std::array<std::int32_t, 6> kAges{Lifetime::kNever, 512, 128, 32, 8, 0};

bool is_known(const Lifetime& buffer, int user, std::int32_t when) {
  const auto index = static_cast<std::size_t>(user);
  return index < buffer.known_from.size() && buffer.known_from[index] <= when;
}

// Whether the later one must not lie where the earlier one lay.
bool collide(const Lifetime& earlier, const Lifetime& later, std::int32_t age) {
  if (earlier.given > later.taken) return true;
  if (is_known(earlier, later.user, later.taken)) return false;
  return age == Lifetime::kNever || later.taken - earlier.given < age;
}

bool apart(const Lifetime& one, const Lifetime& other, std::int32_t age) {
  return one.taken < other.taken ? !collide(one, other, age) : !collide(other, one, age);
}

// The lowest place for so many bytes beside what is taken, which is sorted.
std::size_t lowest_gap(std::span<const Extent> taken, std::size_t bytes) {
  std::size_t at = 0;
  for (const Extent& extent : taken) {
    if (extent.offset >= at + bytes) break;
    at = std::max(at, extent.offset + extent.bytes);
  }
  return at;
}

// The largest first, each as low as it goes.
Packing pack_with(std::span<const Lifetime> buffers,
                  std::span<const Extent> occupied,
                  std::span<const std::size_t> order,
                  std::int32_t age) {
  Packing packing{.offsets = std::vector<std::size_t>(buffers.size())};
  std::vector<std::size_t> placed;  // in the order of their places
  std::vector<Extent> taken;
  const auto lower = [&](std::size_t one, std::size_t other) {
    return packing.offsets[one] < packing.offsets[other];
  };
  for (const std::size_t index : order) {
    taken.clear();
    for (const std::size_t other : placed) {
      if (!apart(buffers[index], buffers[other], age)) {
        taken.push_back({packing.offsets[other], buffers[other].bytes});
      }
    }
    const auto middle = static_cast<std::ptrdiff_t>(taken.size());
    taken.insert(taken.end(), occupied.begin(), occupied.end());
    std::ranges::inplace_merge(taken, taken.begin() + middle, {}, &Extent::offset);
    packing.offsets[index] = lowest_gap(taken, buffers[index].bytes);
    packing.top = std::max(packing.top, packing.offsets[index] + buffers[index].bytes);
    placed.insert(std::ranges::upper_bound(placed, index, lower), index);
  }
  return packing;
}

}  // namespace

Packing pack(std::span<const Lifetime> buffers,
             std::span<const Extent> occupied,
             std::size_t most) {
  std::vector<std::size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t one, std::size_t other) {
    return buffers[one].bytes > buffers[other].bytes;
  });
  std::vector<Extent> sorted(occupied.begin(), occupied.end());
  std::ranges::sort(sorted, {}, &Extent::offset);
  Packing best;
  for (const std::int32_t age : kAges) {
    Packing packing = pack_with(buffers, sorted, order, age);
    const bool fits = packing.top <= most;
    if (age == kAges.front() || packing.top < best.top) best = std::move(packing);
    if (fits) break;
  }
  return best;
}

}  // namespace weft::tensor
