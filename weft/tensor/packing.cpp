#include "weft/tensor/packing.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <utility>

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

// The buffers that are placed, by when they are in the way of others: so that not each has to be
// held against all.
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

  // Whether all of them fit here: not where many are in the way of others for most of a long step.
  bool has_room() const {
    std::size_t entries = 0;
    for (std::size_t i = 0; i < buffers_.size(); ++i) entries += last_of(i) - first_of(i) + 1;
    return entries <= kMostEntries;
  }

  void add(std::size_t index) {
    const auto entry = static_cast<std::uint32_t>(index);
    for (std::size_t at = first_of(index); at <= last_of(index); ++at) at_[at].push_back(entry);
  }

  // Those that must not lie where this buffer does.
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
  // Where its memory is free for everyone, or old enough.
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
  std::vector<std::vector<std::uint32_t>> at_;  // by time, in spans
  std::vector<std::uint32_t> seen_;
  std::uint32_t round_ = 0;
};

// The largest first, each as low as it goes. None where that would take too much.
std::optional<Packing> pack_with(std::span<const Lifetime> buffers,
                                 std::span<const Extent> occupied,
                                 std::span<const std::size_t> order,
                                 std::int32_t age) {
  Packing packing{.offsets = std::vector<std::size_t>(buffers.size())};
  Placed placed(buffers, age);
  if (!placed.has_room()) return std::nullopt;
  std::vector<Extent> taken;
  for (const std::size_t index : order) {
    if (buffers[index].bytes == 0) continue;
    taken.assign(occupied.begin(), occupied.end());
    placed.for_each_beside(index, [&](std::size_t other) {
      taken.push_back({packing.offsets[other], buffers[other].bytes});
    });
    std::ranges::sort(taken, {}, &Extent::offset);
    packing.offsets[index] = lowest_gap(taken, buffers[index].bytes);
    packing.top = std::max(packing.top, packing.offsets[index] + buffers[index].bytes);
    placed.add(index);
  }
  return packing;
}

}  // namespace

std::optional<Packing> pack(std::span<const Lifetime> buffers,
                            std::span<const Extent> occupied,
                            std::size_t most) {
  std::vector<std::size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t one, std::size_t other) {
    return buffers[one].bytes > buffers[other].bytes;
  });
  std::optional<Packing> best;
  for (const std::int32_t age : kAges) {
    std::optional<Packing> packing = pack_with(buffers, occupied, order, age);
    if (!packing) continue;
    if (!best || packing->top < best->top) best = std::move(packing);
    if (best->top <= most) break;
  }
  return best;
}

}  // namespace weft::tensor
