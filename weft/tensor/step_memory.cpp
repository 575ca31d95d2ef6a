#include "weft/tensor/step_memory.h"

#include <algorithm>
#include <array>
#include <bit>

namespace weft::tensor {
namespace {

// Steps with more are not planned: that would take seconds.
constexpr std::size_t kMostBuffers = 1 << 16;
// The lower bits of a key are the buffer's place in its node.
constexpr int kKeyBits = 20;
// Room for those whose size varies: one part in so many, as much as the memory allows.
constexpr std::array<std::size_t, 3> kSpareShares{8, 16, 32};

std::size_t round_up(std::size_t bytes) {
  constexpr std::size_t kAlignment = 256;
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

void StepMemory::begin() {
  ++steps_;
  number_ = missed_ = 0;
  key_ = 0;
  time_ = 0;
  stop_watching();
  users_.clear();
  // Watching costs little, but is of use only where a plan may follow.
  watches_ = std::has_single_bit(static_cast<std::uint64_t>(steps_));
}

void StepMemory::next_node() { key_ = ((key_ >> kKeyBits) + 1) << kKeyBits; }

std::optional<std::size_t> StepMemory::take(std::size_t bytes, const Stream* user) {
  const std::uint64_t key = key_++;
  ++number_;
  if (seen_.size() == kMostBuffers) stop_watching();
  if (watches_) {
    const int who = user_of(user);
    look_what_is_known(who, user);
    seen_.push_back({.bytes = bytes, .taken = time_++, .user = who});
    keys_.push_back(key);
    uses_.emplace_back();
  }
  const auto planned = plan_.find(key);
  if (bytes == 0 || planned == plan_.end()) return std::nullopt;
  return planned->second.offset;
}

void StepMemory::stop_watching() {
  watches_ = false;
  seen_.clear();
  keys_.clear();
  uses_.clear();
  unknown_.clear();
}

void StepMemory::give(std::int64_t number, std::span<const Event> uses) {
  if (!watches_ || number >= std::ssize(seen_)) return;
  const auto index = static_cast<std::size_t>(number);
  seen_[index].given = time_++;
  uses_[index].assign(uses.begin(), uses.end());
  for (std::vector<std::size_t>& unknown : unknown_) unknown.push_back(index);
}

int StepMemory::user_of(const Stream* user) {
  const auto [found, added] = users_.emplace(user, static_cast<int>(users_.size()));
  if (added) {
    std::vector<std::size_t>& unknown = unknown_.emplace_back();
    for (std::size_t i = 0; i < seen_.size(); ++i) {
      if (seen_[i].given != Lifetime::kNever) unknown.push_back(i);
    }
  }
  return found->second;
}

void StepMemory::look_what_is_known(int user, const Stream* stream) {
  std::erase_if(unknown_[static_cast<std::size_t>(user)], [&](std::size_t buffer) {
    const bool known = std::ranges::all_of(uses_[buffer], [&](const Event& use) {
      return stream == nullptr ? use.stream->host_knows(use.ticket) : stream->knows(use);
    });
    if (known) {
      std::vector<std::int32_t>& from = seen_[buffer].known_from;
      from.resize(users_.size(), Lifetime::kNever);
      from[static_cast<std::size_t>(user)] = time_;
    }
    return known;
  });
}

bool StepMemory::is_due() const {
  return watches_ && (missed_ > 0 || plan_.empty()) && !seen_.empty();
}

// As large as the buffer was so far, and a little more where that was not always the same. Those
// that outlive the step have no place: they may be there already when it runs again.
std::size_t StepMemory::room_for(std::size_t buffer, std::size_t spare_share) const {
  if (seen_[buffer].given == Lifetime::kNever) return 0;
  const std::size_t bytes = round_up(seen_[buffer].bytes);
  const auto planned = plan_.find(keys_[buffer]);
  if (planned == plan_.end() || planned->second.seen == bytes) return bytes;
  return round_up(std::max(bytes, planned->second.seen) * (spare_share + 1) / spare_share);
}

std::optional<std::size_t> StepMemory::plan(std::span<const Extent> occupied, std::size_t most) {
  if (!is_due()) return std::nullopt;
  std::vector<Lifetime> buffers = seen_;
  std::optional<Packing> packing;
  for (const std::size_t share : kSpareShares) {
    for (std::size_t i = 0; i < buffers.size(); ++i) buffers[i].bytes = room_for(i, share);
    packing = pack(buffers, occupied, most);
    if (!packing) return std::nullopt;
    if (packing->top <= most) break;
  }
  std::unordered_map<std::uint64_t, Planned> plan;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    if (buffers[i].bytes == 0) continue;
    const auto before = plan_.find(keys_[i]);
    const std::size_t largest = before == plan_.end() ? 0 : before->second.seen;
    plan[keys_[i]] = {.seen = std::max(round_up(seen_[i].bytes), largest),
                      .offset = packing->offsets[i]};
  }
  plan_ = std::move(plan);
  return packing->top;
}

}  // namespace weft::tensor
