#include "weft/tensor/pool.h"

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "weft/base/check.h"
#include "weft/base/error.h"
#include "weft/base/text.h"

namespace weft::tensor {
namespace {

// Pieces up to this size have a region of their own: among large ones they would leave useless
// gaps.
constexpr std::size_t kSmallBytes = 64u << 10;
// Bytes that may always be taken from the device to avoid a wait: for small pieces, and for others.
constexpr std::size_t kSmallSpare = 4u << 20, kSpare = 8u << 20;
// Regions grow by multiples of this, so by up to this much more than requested.
constexpr std::size_t kGranule = 2u << 20;
constexpr std::size_t kLargestOfRows = std::size_t{2} << 30;
// The surplus over the counted bytes is at most 1 / this share.
constexpr std::size_t kSpareShare = 20;

// Bytes that may be taken from the device when `counted` are counted. A small model's twentieth
// would not hold one message in flight.
std::size_t with_spare(std::size_t counted) {
  return counted + std::max(counted / kSpareShare, kSpare);
}

// Bytes that the step's plan counts: small pieces are not placed.
std::size_t placed_bytes(std::size_t bytes) { return bytes > kSmallBytes ? bytes : 0; }

// Bytes taken for a request. Expert rows vary from step to step. Pinned memory comes in separate
// pieces and is slow to get: a piece is rounded up to fit similar requests. The largest requests
// are state, which does not vary.
std::size_t room_for(std::size_t bytes, Tag tag) {
  if (tag != Tag::Offloaded || bytes <= kSmallBytes || bytes > kLargestOfRows) return bytes;
  const std::size_t step = std::bit_floor(bytes) / 8;
  return (bytes + step - 1) / step * step;
}

// True if memory with this tag lasts for the run.
bool lasts(Tag tag) {
  switch (tag) {
    case Tag::Weights:
    case Tag::Gradients:
    case Tag::Optimizer:
      return true;
    case Tag::Activations:
    case Tag::Communication:
    case Tag::Workspace:
    case Tag::Offloaded:
      return false;
  }
  UNREACHABLE("tag {}", static_cast<int>(tag));
}

}  // namespace

std::string_view name_of(Tag tag) {
  switch (tag) {
    case Tag::Weights:
      return "weights";
    case Tag::Gradients:
      return "gradients";
    case Tag::Optimizer:
      return "optimizer";
    case Tag::Activations:
      return "activations";
    case Tag::Communication:
      return "communication";
    case Tag::Workspace:
      return "workspace";
    case Tag::Offloaded:
      return "offloaded";
  }
  UNREACHABLE("tag {}", static_cast<int>(tag));
}

Block::~Block() {
  for (const Event& event : pending_) note_use(uses_, event);
  pool_->release(*this, std::move(uses_));
}

std::byte* Block::on(Stream& stream) {
  // Several streams may use the block concurrently; each must come after the earlier owners.
  // Streams behind the first may already do so, by their earlier waits.
  const bool is_first = uses_.empty();
  for (const Event& event : pending_) {
    if (event.stream == &stream || event.stream->reached(event.ticket)) continue;
    if (is_first || !stream.knows(event)) stream.wait(event);
  }
  note_use(uses_, {&stream, stream.next_ticket()});
  return data_;
}

std::byte* Block::on_host() {
  CHECK(memory_ == Memory::HostVisible,
        "the host reads or writes a tensor in device memory ({}); upload, download or allocate it "
        "host-visible",
        name_of(tag_));
  for (const Event& event : pending_) event.stream->host_wait(event);
  pending_.clear();
  return data_;
}

// Free blocks by exact size. Sizes are few: pipeline stages exchange equal buffers.
class Pool::ExchangeArena {
 public:
  explicit ExchangeArena(Device& device) : memory_(device, Memory::Device) {}

  std::pair<std::byte*, std::vector<Event>> take(std::size_t bytes, const Stream* user) {
    std::vector<Free>& free = free_[bytes];
    const auto chosen = choose(free, user);
    if (chosen == free.end()) return {memory_.take(bytes, nullptr, bytes).first, {}};
    std::pair<std::byte*, std::vector<Event>> taken{chosen->data, std::move(chosen->uses)};
    free.erase(chosen);
    return taken;
  }

  void give(std::byte* data, std::size_t bytes, std::vector<Event> uses) {
    free_[bytes].push_back({data, std::move(uses)});
  }

  std::size_t reserved() const { return memory_.reserved(); }

  void forget_uses() {
    for (auto& [bytes, free] : free_) {
      for (Free& piece : free) {
        std::erase_if(piece.uses, [](const Event& use) { return use.stream->reached(use.ticket); });
      }
    }
  }

 private:
  struct Free {
    std::byte* data;
    std::vector<Event> uses;
  };
  // Number of idle pieces, all waiting for compute, from which one is handed out. A message that
  // waits for its memory is late.
  static constexpr int kMostIdle = 3;

  static bool is_known(const Event& use, const Stream* user) {
    return user == nullptr ? use.stream->reached(use.ticket) : user->knows(use);
  }

  // First piece whose uses are all known to be complete. Otherwise the oldest piece that waits for
  // this rank's compute only, if enough such pieces are idle.
  static std::vector<Free>::iterator choose(std::vector<Free>& free, const Stream* user) {
    auto oldest = free.end();
    int waiting = 0;
    for (auto at = free.begin(); at != free.end(); ++at) {
      const auto known = [&](const Event& use) { return is_known(use, user); };
      if (std::ranges::all_of(at->uses, known)) return at;
      const bool only_compute = std::ranges::all_of(at->uses, [&](const Event& use) {
        const StreamRole role = use.stream->role();
        return known(use) || (role != StreamRole::Communication && role != StreamRole::Copy);
      });
      if (!only_compute) continue;
      if (waiting++ == 0) oldest = at;
    }
    return waiting >= kMostIdle ? oldest : free.end();
  }

  Arena memory_;                                   // grows only
  std::map<std::size_t, std::vector<Free>> free_;  // in order of release
};

Pool::Pool(Device& device, PoolWatcher* watcher)
    : watcher_(watcher),
      lasting_arena_(std::make_unique<Arena>(device, Memory::Device)),
      passing_arena_(std::make_unique<Arena>(device, Memory::Device)),
      small_arena_(std::make_unique<Arena>(device, Memory::Device)),
      visible_arena_(std::make_unique<Arena>(device, Memory::HostVisible)),
      offloaded_arena_(std::make_unique<Arena>(device, Memory::HostVisible)),
      exchange_arena_(std::make_unique<ExchangeArena>(device)) {}

Pool::~Pool() = default;

Arena& Pool::arena_of(Tag tag, Memory memory, std::size_t bytes) {
  if (tag == Tag::Offloaded) return *offloaded_arena_;
  if (memory == Memory::HostVisible) return *visible_arena_;
  if (lasts(tag)) return *lasting_arena_;
  return bytes > kSmallBytes ? *passing_arena_ : *small_arena_;
}

// Bytes that may still be taken from the device for a request of `bytes`.
std::size_t Pool::may_grow(std::size_t bytes) const {
  const std::size_t counted = std::max(most_at_once_, total_.bytes + bytes);
  const std::size_t most = with_spare(counted) - kGranule;
  return most - std::min(most, reserved());
}

struct Pool::Taken {
  std::byte* data = nullptr;
  std::vector<Event> pending{};
  Block::Number number{};
};

// True if the buffer got its place.
bool Pool::take_place(const Place& place, std::size_t bytes, Taken& taken) {
  Arena& arena = *passing_arena_;
  if (arena.begin() == nullptr) return false;
  if (place.offset) {
    std::byte* data = arena.begin() + *place.offset;
    std::optional<std::vector<Event>> pending = arena.take_at(data, bytes);
    if (!pending) return false;
    taken.data = data;
    taken.pending = std::move(*pending);
    return true;
  }
  // About half of a step's times are releases.
  const auto others = static_cast<std::uint64_t>(place.age / 2);
  // Half of the allowance: some buffers will not find a fitting place.
  auto found = arena.take_lowest(bytes, user_, place.kept, others, may_grow(bytes) / 2);
  if (!found) return false;
  std::tie(taken.data, taken.pending) = std::move(*found);
  return true;
}

Pool::Taken Pool::take(std::size_t bytes, Tag tag, Memory memory, Reuse reuse) {
  Taken taken;
  std::optional<Place> place;
  const bool is_numbered =
      step_ != nullptr && memory == Memory::Device && reuse == Reuse::InOrder && !lasts(tag);
  if (is_numbered) {
    taken.number = {.step = steps_, .buffer = step_->taken()};
    place = step_->take(placed_bytes(bytes), user_);
  }
  if (bytes == 0) return taken;
  if (reuse == Reuse::Exchanged) {
    std::tie(taken.data, taken.pending) = exchange_arena_->take(bytes, user_);
    return taken;
  }
  Arena& arena = arena_of(tag, memory, bytes);
  if (is_numbered && bytes > kSmallBytes) {
    if (place && take_place(*place, bytes, taken)) return taken;
    step_->missed();
  }
  if (tag == Tag::Offloaded) {
    std::tie(taken.data, taken.pending) = arena.take_fitting(room_for(bytes, tag), user_);
    return taken;
  }
  std::size_t room = may_grow(bytes);
  if (&arena == small_arena_.get()) {
    room = std::max(room, kSmallSpare - std::min(kSmallSpare, arena.reserved()));
  }
  std::tie(taken.data, taken.pending) = arena.take(bytes, user_, room);
  return taken;
}

std::shared_ptr<Block> Pool::allocate(std::size_t bytes, Tag tag, Memory memory, Reuse reuse) {
  CHECK(memory == Memory::Device || reuse == Reuse::InOrder,
        "host-visible memory is reused in order");
  CHECK(tag != Tag::Offloaded || memory == Memory::HostVisible,
        "what is offloaded lies in host memory");
  Taken taken;
  try {
    taken = take(bytes, tag, memory, reuse);
  } catch (const base::SystemError& error) {
    throw base::SystemError(base::text("{}; asked for {} of {}, this rank has {}",
                                       error.what(),
                                       base::human_bytes(double(bytes)),
                                       name_of(tag),
                                       in_use()));
  }
  note_reserved();
  const auto add = [&](PoolUse& use) {
    use.bytes += bytes;
    use.peak = std::max(use.peak, use.bytes);
  };
  add(use_[static_cast<std::size_t>(tag)]);
  if (tag != Tag::Offloaded) add(total_);
  most_at_once_ = std::max(most_at_once_, total_.bytes);
  auto block = std::make_shared<Block>(this,
                                       tag,
                                       memory,
                                       reuse,
                                       taken.data,
                                       bytes,
                                       std::move(taken.pending));
  block->number_ = taken.number;
  if (watcher_ != nullptr) watcher_->taken(*block);
  return block;
}

// "weights 4.0 GiB, activations 1.5 GiB"
std::string Pool::in_use() const {
  std::vector<std::string> parts;
  for (int i = 0; i < kTags; ++i) {
    const std::size_t bytes = use_[static_cast<std::size_t>(i)].bytes;
    if (bytes == 0) continue;
    parts.push_back(
        base::text("{} {}", name_of(static_cast<Tag>(i)), base::human_bytes(double(bytes))));
  }
  return parts.empty() ? "nothing yet" : base::text("{}", fmt::join(parts, ", "));
}

void Pool::release(const Block& block, std::vector<Event> uses) {
  if (watcher_ != nullptr) watcher_->given(block);
  if (block.bytes_ == 0) return;
  use_[static_cast<std::size_t>(block.tag_)].bytes -= block.bytes_;
  if (block.tag_ != Tag::Offloaded) total_.bytes -= block.bytes_;
  const bool of_this_step = step_ != nullptr && block.number_.step == steps_;
  if (of_this_step) step_->give(block.number_.buffer, placed_bytes(block.bytes_), uses);
  switch (block.reuse_) {
    case Reuse::InOrder:
      return arena_of(block.tag_, block.memory_, block.bytes_)
          .give(block.data_, room_for(block.bytes_, block.tag_), std::move(uses));
    case Reuse::Exchanged:
      return exchange_arena_->give(block.data_, block.bytes_, std::move(uses));
  }
}

void Pool::settle(const void* kind) {
  const auto settle_arena = [](Arena& arena) {
    arena.forget_uses();
    arena.merge(nullptr);
  };
  for (Arena* arena : {lasting_arena_.get(),
                       passing_arena_.get(),
                       small_arena_.get(),
                       visible_arena_.get(),
                       offloaded_arena_.get()}) {
    settle_arena(*arena);
  }
  exchange_arena_->forget_uses();
  user_ = nullptr;
  if (step_ != nullptr) plan_step();
  const bool is_planned = kind != nullptr && watcher_ == nullptr;
  step_ = is_planned ? &step_memories_[kind] : nullptr;
  ++steps_;
  if (step_ == nullptr) return;
  step_->begin();
  make_room();
}

// Plans the next run from the finished step. Memory that it will not need returns to the device;
// missing memory is taken.
void Pool::plan_step() {
  Arena& arena = *passing_arena_;
  if (arena.begin() == nullptr) return;
  const std::size_t others = reserved() - arena.reserved();
  const std::size_t most = with_spare(most_at_once_);
  const std::optional<std::size_t> top =
      step_->plan(arena.occupied(), arena.reserved(), most - std::min(most, others));
  if (top) arena.resize(*top);
  note_reserved();
}

Rehearsal Pool::rehearsal() const {
  CHECK(step_ != nullptr, "a step that is not watched has no rehearsal");
  return {.step = step_->watched(),
          .counted = most_at_once_,
          .others = reserved() - passing_arena_->reserved()};
}

void Pool::expect(const void* kind, const Rehearsal& rehearsal) {
  settle();
  Arena& arena = *passing_arena_;
  if (!arena.is_whole()) return;
  const std::size_t most = with_spare(rehearsal.counted);
  step_memories_[kind].expect(rehearsal.step,
                              arena.occupied(),
                              most - std::min(most, rehearsal.others));
}

// Grows the region for the coming step's places. If the device has too little, buffers lie wherever
// there is room. The first one that does not fit is reported.
void Pool::make_room() {
  Arena& arena = *passing_arena_;
  const std::size_t top = step_->fixed_top();
  if (!arena.is_whole() || top <= arena.reserved()) return;
  try {
    arena.resize(top);
  } catch (const base::SystemError&) {
    return;
  }
  note_reserved();
}

void Pool::note_reserved() { most_reserved_ = std::max(most_reserved_, reserved()); }

std::size_t Pool::reserved() const {
  return lasting_arena_->reserved() + passing_arena_->reserved() + small_arena_->reserved() +
         exchange_arena_->reserved();
}

void Pool::reset_peaks() {
  for (PoolUse& use : use_) use.peak = use.bytes;
  total_.peak = total_.bytes;
}

}  // namespace weft::tensor
