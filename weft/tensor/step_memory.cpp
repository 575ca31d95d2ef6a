#include "weft/tensor/step_memory.h"

#include <algorithm>
#include <bit>

namespace weft::tensor {
namespace {

// Steps with more buffers are not planned: planning would take seconds.
constexpr std::size_t kMostBuffers = 1 << 16;
// The low bits of a key are the buffer's index within its node.
constexpr int kKeyBits = 20;

std::size_t round_up(std::size_t bytes) {
  constexpr std::size_t kPlaceAlignment = 256;
  return (bytes + kPlaceAlignment - 1) / kPlaceAlignment * kPlaceAlignment;
}

}  // namespace

void note_varying(WatchedStep& step, const WatchedStep& other) {
  std::unordered_map<std::uint64_t, std::size_t> bytes;
  for (std::size_t i = 0; i < other.keys.size(); ++i) bytes[other.keys[i]] = other.buffers[i].bytes;
  for (std::size_t i = 0; i < step.keys.size(); ++i) {
    const auto found = bytes.find(step.keys[i]);
    step.buffers[i].varies = found == bytes.end() || found->second != step.buffers[i].bytes;
  }
}

void StepMemory::begin() {
  ++steps_;
  number_ = missed_ = 0;
  alive_ = most_alive_ = 0;
  key_ = 0;
  time_ = 0;
  stop_watching();
  users_.clear();
  // Watching is cheap, but useful only if a plan may follow.
  watches_ = outdated_ || std::has_single_bit(static_cast<std::uint64_t>(steps_));
  outdated_ = false;
}

void StepMemory::next_node() { key_ = ((key_ >> kKeyBits) + 1) << kKeyBits; }

std::optional<Place> StepMemory::take(std::size_t bytes, const Stream* user) {
  const std::uint64_t key = key_++;
  ++number_;
  alive_ += bytes;
  most_alive_ = std::max(most_alive_, alive_);
  most_ever_ = std::max(most_ever_, alive_);
  if (seen_.keys.size() == kMostBuffers) stop_watching();
  if (watches_) {
    const int who = user_of(user);
    look_what_is_known(who, user);
    seen_.buffers.push_back({.bytes = bytes, .taken = time_++, .user = who});
    seen_.keys.push_back(key);
    uses_.emplace_back();
  }
  const auto found = plan_.find(key);
  if (found == plan_.end()) return std::nullopt;
  Planned& planned = found->second;
  if (planned.varies)
    return Place{.offset = std::nullopt, .kept = planned.kept, .age = kAges[age_]};
  if (round_up(bytes) == planned.bytes) return Place{.offset = planned.offset};
  planned.varies = outdated_ = true;
  return std::nullopt;
}

void StepMemory::stop_watching() {
  watches_ = false;
  seen_ = {};
  uses_.clear();
  unknown_.clear();
}

void StepMemory::give(std::int64_t number, std::size_t bytes, std::span<const Event> uses) {
  alive_ -= bytes;
  if (!watches_ || number >= std::ssize(seen_.keys)) return;
  const auto index = static_cast<std::size_t>(number);
  seen_.buffers[index].given = time_++;
  uses_[index].assign(uses.begin(), uses.end());
  for (std::vector<std::size_t>& unknown : unknown_) unknown.push_back(index);
}

int StepMemory::user_of(const Stream* user) {
  const auto [found, added] = users_.emplace(user, static_cast<int>(users_.size()));
  if (added) {
    std::vector<std::size_t>& unknown = unknown_.emplace_back();
    for (std::size_t i = 0; i < seen_.keys.size(); ++i) {
      if (seen_.buffers[i].given != Lifetime::kNever) unknown.push_back(i);
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
      std::vector<std::int32_t>& from = seen_.buffers[buffer].known_from;
      from.resize(users_.size(), Lifetime::kNever);
      from[static_cast<std::size_t>(user)] = time_;
    }
    return known;
  });
}

bool StepMemory::is_due(bool too_large) const {
  return watches_ && (missed_ > 0 || outdated_ || too_large || plan_.empty()) &&
         !seen_.keys.empty();
}

WatchedStep StepMemory::step_to_plan() const {
  WatchedStep step = seen_;
  for (std::size_t i = 0; i < step.keys.size(); ++i) {
    const auto planned = plan_.find(step.keys[i]);
    step.buffers[i].varies = planned != plan_.end() && planned->second.varies;
  }
  return step;
}

// Limit for this step, scaled so that the largest step ends below `most`.
std::size_t StepMemory::most_for_this_step(std::size_t most) const {
  if (most_alive_ == most_ever_) return most;
  return static_cast<std::size_t>(double(most) * double(most_alive_) / double(most_ever_));
}

std::optional<std::size_t> StepMemory::plan(std::span<const Extent> occupied,
                                            std::size_t size,
                                            std::size_t most) {
  const bool too_loose = size > most && !plan_.empty() && !outdated_ && age_ + 1 < kAges.size();
  if (too_loose) {
    ++age_;
    outdated_ = true;
  }
  if (!is_due(size > most)) return std::nullopt;
  return make_plan(step_to_plan(), occupied, most_for_this_step(most));
}

void StepMemory::expect(const WatchedStep& step,
                        std::span<const Extent> occupied,
                        std::size_t most) {
  make_plan(step, occupied, most);
}

std::optional<std::size_t> StepMemory::make_plan(const WatchedStep& step,
                                                 std::span<const Extent> occupied,
                                                 std::size_t most) {
  std::vector<Lifetime> buffers = step.buffers;
  for (Lifetime& buffer : buffers) {
    // Buffers that outlive the step have no place: they may still be alive when it runs again.
    const bool stays = buffer.given == Lifetime::kNever;
    buffer.bytes = stays ? 0 : round_up(buffer.bytes);
    buffer.varies = buffer.varies && !stays;
  }
  std::optional<Packing> packing = pack(buffers, occupied, most, age_);
  if (!packing) return std::nullopt;
  plan_.clear();
  fixed_top_ = 0;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    if (buffers[i].given == Lifetime::kNever) continue;
    plan_[step.keys[i]] = {.bytes = buffers[i].bytes,
                           .varies = buffers[i].varies,
                           .offset = packing->offsets[i],
                           .kept = std::move(packing->kept[i])};
    if (!buffers[i].varies && buffers[i].bytes > 0) {
      fixed_top_ = std::max(fixed_top_, packing->offsets[i] + buffers[i].bytes);
    }
  }
  outdated_ = false;
  age_ = packing->age;
  return packing->top;
}

}  // namespace weft::tensor
