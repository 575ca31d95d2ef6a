#include "weft/tensor/packing.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

namespace weft::tensor {
namespace {

bool is_known(const Lifetime& buffer, int user, std::int32_t when) {
  const auto index = static_cast<std::size_t>(user);
  return index < buffer.known_from.size() && buffer.known_from[index] <= when;
}

// True if the later buffer must not overlap the earlier one's memory.
bool collide(const Lifetime& earlier, const Lifetime& later, std::int32_t age) {
  if (earlier.given > later.taken) return true;
  if (is_known(earlier, later.user, later.taken)) return false;
  return age == Lifetime::kNever || later.taken - earlier.given < age;
}

bool apart(const Lifetime& one, const Lifetime& other, std::int32_t age) {
  return one.taken < other.taken ? !collide(one, other, age) : !collide(other, one, age);
}

// Sorts extents and joins those that overlap or touch.
void unite(std::vector<Extent>& extents) {
  std::ranges::sort(extents, {}, &Extent::offset);
  std::size_t count = 0;
  for (const Extent& next : extents) {
    if (count > 0 && next.offset <= extents[count - 1].offset + extents[count - 1].bytes) {
      Extent& last = extents[count - 1];
      last.bytes = std::max(last.offset + last.bytes, next.offset + next.bytes) - last.offset;
    } else {
      extents[count++] = next;
    }
  }
  extents.resize(count);
}

// Placed buffers, indexed by the time during which they block others, so that not every pair is
// compared.
class Placed {
 public:
  Placed(std::span<const Lifetime> buffers, std::int32_t age)
      : buffers_(buffers), age_(age), seen_(buffers.size(), 0) {
    for (const Lifetime& buffer : buffers) {
      last_ = std::max(last_, buffer.taken);
      users_ = std::max(users_, buffer.user + 1);
    }
    at_.resize(static_cast<std::size_t>(last_) / kSpan + 1);
  }

  // True if the index can hold all buffers; false if many of them block others for most of a long
  // step.
  bool has_room() const {
    std::size_t entries = 0;
    for (std::size_t i = 0; i < buffers_.size(); ++i) entries += last_of(i) - first_of(i) + 1;
    return entries <= kMostEntries;
  }

  void add(std::size_t index) {
    const auto entry = static_cast<std::uint32_t>(index);
    for (std::size_t at = first_of(index); at <= last_of(index); ++at) at_[at].push_back(entry);
  }

  // Calls act for the placed buffers that must not overlap this one.
  template <typename Do>
  void for_each_beside(std::size_t index, const Do& act) {
    ++round_;
    for (std::size_t at = first_of(index); at <= last_of(index); ++at) {
      for (const std::uint32_t other : at_[at]) {
        if (std::exchange(seen_[other], round_) == round_) continue;
        if (!apart(buffers_[index], buffers_[other], age_)) act(other);
      }
    }
  }

 private:
  static constexpr std::int32_t kSpan = 64;
  static constexpr std::size_t kMostEntries = 1 << 25;

  std::size_t first_of(std::size_t index) const {
    return static_cast<std::size_t>(buffers_[index].taken) / kSpan;
  }
  // Last time span during which the buffer blocks any user.
  std::size_t last_of(std::size_t index) const {
    const Lifetime& buffer = buffers_[index];
    std::int32_t free = buffer.given;
    for (int user = 0; user < users_; ++user) free = std::max(free, free_for(buffer, user));
    return static_cast<std::size_t>(std::min(free, last_)) / kSpan;
  }
  std::int32_t free_for(const Lifetime& buffer, int user) const {
    const auto at = static_cast<std::size_t>(user);
    const std::int32_t known =
        at < buffer.known_from.size() ? buffer.known_from[at] : Lifetime::kNever;
    if (age_ == Lifetime::kNever || buffer.given > Lifetime::kNever - age_) return known;
    return std::min(known, buffer.given + age_);
  }

  std::span<const Lifetime> buffers_;
  const std::int32_t age_;
  std::int32_t last_ = 0;
  int users_ = 0;
  std::vector<std::vector<std::uint32_t>> at_;  // buffers by time span
  std::vector<std::uint32_t> seen_;
  std::uint32_t round_ = 0;
};

// Places buffers one after the other, each as low as possible. nullopt: too expensive.
std::optional<Packing> pack_with(std::span<const Lifetime> buffers,
                                 std::span<const Extent> occupied,
                                 std::span<const std::size_t> order,
                                 std::int32_t age) {
  Packing packing{.offsets = std::vector<std::size_t>(buffers.size()),
                  .kept = std::vector<std::vector<Extent>>(buffers.size())};
  Placed placed(buffers, age);
  if (!placed.has_room()) return std::nullopt;
  std::vector<Extent> taken;
  for (const std::size_t index : order) {
    const Lifetime& buffer = buffers[index];
    if (buffer.bytes == 0 && !buffer.varies) continue;
    taken.assign(occupied.begin(), occupied.end());
    std::vector<Extent>& kept = packing.kept[index];
    placed.for_each_beside(index, [&](std::size_t other) {
      const Extent place{packing.offsets[other], buffers[other].bytes};
      taken.push_back(place);
      if (buffer.varies && buffers[other].taken > buffer.taken) kept.push_back(place);
    });
    unite(kept);
    if (buffer.bytes == 0) continue;
    std::ranges::sort(taken, {}, &Extent::offset);
    std::span<const Extent> in_the_way = taken;
    packing.offsets[index] = lowest_beside(in_the_way, 0, buffer.bytes);
    packing.top = std::max(packing.top, packing.offsets[index] + buffer.bytes);
    placed.add(index);
  }
  return packing;
}

// Fixed sizes come first, by size; sizes that vary follow, by time.
bool is_placed_before(const Lifetime& one, const Lifetime& other) {
  if (one.varies != other.varies) return other.varies;
  return one.varies ? one.taken < other.taken : one.bytes > other.bytes;
}

}  // namespace

std::size_t lowest_beside(std::span<const Extent>& taken, std::size_t at, std::size_t bytes) {
  while (!taken.empty() && taken.front().offset < at + bytes) {
    at = std::max(at, taken.front().offset + taken.front().bytes);
    taken = taken.subspan(1);
  }
  return at;
}

std::optional<Packing> pack(std::span<const Lifetime> buffers,
                            std::span<const Extent> occupied,
                            std::size_t most,
                            std::size_t first_age) {
  std::vector<std::size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t one, std::size_t other) {
    return is_placed_before(buffers[one], buffers[other]);
  });
  std::optional<Packing> best;
  for (std::size_t age = first_age; age < kAges.size(); ++age) {
    std::optional<Packing> packing = pack_with(buffers, occupied, order, kAges[age]);
    if (!packing) continue;
    packing->age = age;
    if (!best || packing->top < best->top) best = std::move(packing);
    if (best->top <= most) break;
  }
  return best;
}

}  // namespace weft::tensor
