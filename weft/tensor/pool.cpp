#include "weft/tensor/pool.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "weft/base/check.h"
#include "weft/base/error.h"
#include "weft/base/text.h"

namespace weft::tensor {
namespace {

constexpr std::size_t kAlignment = 256;  // wide enough for any vector unit and for cache lines
// Memory is taken from the device in such pieces.
constexpr std::size_t kSlabBytes = 32u << 20, kVisibleSlabBytes = 1u << 20;

std::size_t round_up(std::size_t bytes, std::size_t multiple) {
  return (bytes + multiple - 1) / multiple * multiple;
}

// Keeps the latest position for each stream and drops what is over.
void note_use(std::vector<Event>& uses, const Event& use) {
  for (Event& known : uses) {
    if (known.stream == use.stream) {
      known.ticket = std::max(known.ticket, use.ticket);
      return;
    }
  }
  uses.push_back(use);
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
  }
  UNREACHABLE("tag {}", static_cast<int>(tag));
}

Block::~Block() {
  for (const Event& event : pending_) note_use(uses_, event);
  pool_->release(*this, std::move(uses_));
}

std::byte* Block::on(Stream& stream) {
  for (const Event& event : pending_) {
    if (event.stream != &stream && !event.stream->reached(event.ticket)) stream.wait(event);
  }
  pending_.clear();
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

// Best fit with splitting over slabs of the device's memory; deterministic in its calls.
class Pool::Arena {
 public:
  Arena(Device& device, Memory memory) : device_(device), memory_(memory) {}
  ~Arena() {
    for (const auto& [data, bytes] : slabs_) device_.give_back(memory_, data, bytes);
  }

  std::pair<std::byte*, std::vector<Event>> take(std::size_t bytes, const Stream* user) {
    bytes = round_up(bytes, kAlignment);
    std::byte* data = find(bytes, user);
    Free found = std::move(free_.at(data));
    erase(data, found.bytes);
    if (found.bytes > bytes) {
      insert(data + bytes, {found.bytes - bytes, found.uses, found.slab, found.given});
    }
    return {data, std::move(found.uses)};
  }

  void give(std::byte* data, std::size_t bytes, std::vector<Event> uses) {
    insert(data, {round_up(bytes, kAlignment), std::move(uses), slab_of(data), ++given_});
  }

  // Forgets uses that are over; for when all of them are.
  void forget_uses() {
    for (auto& [data, piece] : free_) {
      std::erase_if(piece.uses, [](const Event& use) { return use.stream->reached(use.ticket); });
    }
  }

  // Merges neighbours that are both ready for `user`.
  void merge(const Stream* user) {
    for (auto at = free_.begin(); at != free_.end();) {
      const auto next = std::next(at);
      const bool adjacent = next != free_.end() && next->first == at->first + at->second.bytes &&
                            next->second.slab == at->second.slab;
      if (!adjacent || !is_ready(at->second, user) || !is_ready(next->second, user)) {
        at = next;
        continue;
      }
      std::byte* data = at->first;
      Free piece = at->second;
      absorb(piece, next->second);
      erase(next->first, next->second.bytes);
      erase(data, at->second.bytes);
      at = insert(data, std::move(piece));
    }
  }

 private:
  // So many pieces that would make their user wait may lie idle before one is given out anyway.
  static constexpr int kMostIdle = 6;

  struct Free {
    std::size_t bytes;
    std::vector<Event> uses;
    std::size_t slab;
    std::uint64_t given;  // when: a running number
  };

  static bool is_ready(const Free& piece, const Stream* user) {
    return std::ranges::all_of(piece.uses, [&](const Event& use) {
      return user == nullptr ? use.stream->reached(use.ticket) : user->knows(use);
    });
  }

  std::byte* find(std::size_t bytes, const Stream* user) {
    if (std::byte* ready = find_ready(bytes, user)) return ready;
    merge(user);
    if (std::byte* ready = find_ready(bytes, user)) return ready;
    if (std::byte* oldest = find_oldest(bytes)) return oldest;
    grow(bytes);
    return find_ready(bytes, user);
  }

  std::byte* find_ready(std::size_t bytes, const Stream* user) const {
    for (auto at = by_size_.lower_bound({bytes, nullptr}); at != by_size_.end(); ++at) {
      if (is_ready(free_.at(at->second), user)) return at->second;
    }
    return nullptr;
  }

  // The piece given back longest ago, where enough would do.
  std::byte* find_oldest(std::size_t bytes) const {
    std::byte* oldest = nullptr;
    int fitting = 0;
    for (auto at = by_size_.lower_bound({bytes, nullptr}); at != by_size_.end(); ++at, ++fitting) {
      if (oldest == nullptr || free_.at(at->second).given < free_.at(oldest).given) {
        oldest = at->second;
      }
    }
    return fitting >= kMostIdle ? oldest : nullptr;
  }

  static void absorb(Free& piece, const Free& other) {
    piece.bytes += other.bytes;
    piece.given = std::max(piece.given, other.given);
    for (const Event& use : other.uses) note_use(piece.uses, use);
  }

  void grow(std::size_t bytes) {
    const std::size_t slab = memory_ == Memory::HostVisible ? kVisibleSlabBytes : kSlabBytes;
    const std::size_t size = round_up(std::max(bytes, slab), slab);
    std::byte* data = device_.take(memory_, size);
    slabs_.emplace_back(data, size);
    insert(data, {size, {}, slabs_.size() - 1, 0});
  }

  std::size_t slab_of(const std::byte* data) const {
    for (std::size_t i = 0; i < slabs_.size(); ++i) {
      if (data >= slabs_[i].first && data < slabs_[i].first + slabs_[i].second) return i;
    }
    UNREACHABLE("memory that is not of this pool");
  }

  std::map<std::byte*, Free>::iterator insert(std::byte* data, Free piece) {
    by_size_.emplace(piece.bytes, data);
    return free_.emplace(data, std::move(piece)).first;
  }

  void erase(std::byte* data, std::size_t bytes) {
    by_size_.erase({bytes, data});
    free_.erase(data);
  }

  Device& device_;
  const Memory memory_;
  std::vector<std::pair<std::byte*, std::size_t>> slabs_;
  std::map<std::byte*, Free> free_;
  std::set<std::pair<std::size_t, std::byte*>> by_size_;
  std::uint64_t given_ = 0;
};

// Blocks of the sizes that were asked for. There are few sizes: what stages exchange is all alike.
class Pool::ExchangeArena {
 public:
  explicit ExchangeArena(Device& device) : memory_(device, Memory::Device) {}

  std::pair<std::byte*, std::vector<Event>> take(std::size_t bytes, const Stream* user) {
    std::vector<Free>& free = free_[bytes];
    const auto chosen = choose(free, user);
    if (chosen == free.end()) return {memory_.take(bytes, nullptr).first, {}};
    std::pair<std::byte*, std::vector<Event>> taken{chosen->data, std::move(chosen->uses)};
    free.erase(chosen);
    return taken;
  }

  void give(std::byte* data, std::size_t bytes, std::vector<Event> uses) {
    free_[bytes].push_back({data, std::move(uses)});
  }

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
  // So many pieces that would make their user wait for compute may lie idle before one is given
  // out: a message that waits for memory comes late.
  static constexpr int kMostIdle = 3;

  static bool is_known(const Event& use, const Stream* user) {
    return user == nullptr ? use.stream->reached(use.ticket) : user->knows(use);
  }

  // One whose uses are all known to be over; else the one given back longest ago of enough that
  // only wait for this rank's compute.
  static std::vector<Free>::iterator choose(std::vector<Free>& free, const Stream* user) {
    auto oldest = free.end();
    int waiting = 0;
    for (auto at = free.begin(); at != free.end(); ++at) {
      const auto known = [&](const Event& use) { return is_known(use, user); };
      if (std::ranges::all_of(at->uses, known)) return at;
      const bool only_compute = std::ranges::all_of(at->uses, [&](const Event& use) {
        return known(use) || use.stream->role() != StreamRole::Communication;
      });
      if (!only_compute) continue;
      if (waiting++ == 0) oldest = at;
    }
    return waiting >= kMostIdle ? oldest : free.end();
  }

  Arena memory_;                                   // grows only
  std::map<std::size_t, std::vector<Free>> free_;  // in the order in which they came back
};

Pool::Pool(Device& device)
    : visible_arena_(std::make_unique<Arena>(device, Memory::HostVisible)),
      exchange_arena_(std::make_unique<ExchangeArena>(device)) {
  for (auto& arena : arenas_) arena = std::make_unique<Arena>(device, Memory::Device);
}

Pool::~Pool() = default;

Pool::Arena& Pool::arena_of(Tag tag, Memory memory) {
  return memory == Memory::HostVisible ? *visible_arena_ : *arenas_[static_cast<std::size_t>(tag)];
}

std::shared_ptr<Block> Pool::allocate(std::size_t bytes, Tag tag, Memory memory, Reuse reuse) {
  CHECK(memory == Memory::Device || reuse == Reuse::InOrder,
        "host-visible memory is reused in order");
  std::byte* data = nullptr;
  std::vector<Event> pending;
  try {
    if (bytes > 0 && reuse == Reuse::Exchanged) {
      std::tie(data, pending) = exchange_arena_->take(bytes, user_);
    } else if (bytes > 0) {
      std::tie(data, pending) = arena_of(tag, memory).take(bytes, user_);
    }
  } catch (const base::SystemError& error) {
    throw base::SystemError(base::text("{}; asked for {} of {}, this rank has {}",
                                       error.what(),
                                       base::human_bytes(double(bytes)),
                                       name_of(tag),
                                       in_use()));
  }
  for (PoolUse* use : {&use_[static_cast<std::size_t>(tag)], &total_}) {
    use->bytes += bytes;
    use->peak = std::max(use->peak, use->bytes);
  }
  return std::make_shared<Block>(this, tag, memory, reuse, data, bytes, std::move(pending));
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
  if (block.bytes_ == 0) return;
  use_[static_cast<std::size_t>(block.tag_)].bytes -= block.bytes_;
  total_.bytes -= block.bytes_;
  switch (block.reuse_) {
    case Reuse::InOrder:
      return arena_of(block.tag_, block.memory_).give(block.data_, block.bytes_, std::move(uses));
    case Reuse::Exchanged:
      return exchange_arena_->give(block.data_, block.bytes_, std::move(uses));
  }
}

void Pool::settle() {
  const auto settle_arena = [](Arena& arena) {
    arena.forget_uses();
    arena.merge(nullptr);
  };
  for (const auto& arena : arenas_) settle_arena(*arena);
  settle_arena(*visible_arena_);
  exchange_arena_->forget_uses();
  user_ = nullptr;
}

void Pool::reset_peaks() {
  for (PoolUse& use : use_) use.peak = use.bytes;
  total_.peak = total_.bytes;
}

}  // namespace weft::tensor
