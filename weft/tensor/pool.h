// A rank's memory: every allocation belongs to its pool under a tag, and peaks are exact.
//
// Allocation and release happen on the host thread, in issue order, while the work that uses a
// buffer runs later on streams. So a released buffer carries the positions of its last uses, and
// whoever gets that memory next waits for them. Such a wait can undo what a schedule overlaps, so
// memory goes first to those who wait for its last uses anyway, by what their stream was told so
// far, and more is taken from the device before a stream is made to wait, as long as that leaves
// what was taken near what was counted. Steps that say which they are get places that were planned
// when they ran before (tensor/step_memory.h). What lives as long as the run, what lives within a
// step, the small pieces of it, host-visible memory and what is offloaded have a region each. The
// same sequence of calls gets the same addresses, step after step, but for the step after which
// there is a new plan. What is counted is what was asked for, whatever memory it is in: the same on
// every device.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weft/tensor/arena.h"
#include "weft/tensor/device.h"
#include "weft/tensor/step_memory.h"
#include "weft/tensor/stream.h"
#include "weft/tensor/tag.h"

namespace weft::tensor {

class Pool;

// A piece of pool memory. Held by shared handles (tensors and their views); goes back with the last
// one.
class Block {
 public:
  Block(Pool* pool,
        Tag tag,
        Memory memory,
        Reuse reuse,
        std::byte* data,
        std::size_t bytes,
        std::vector<Event> pending)
      : pool_(pool),
        tag_(tag),
        memory_(memory),
        reuse_(reuse),
        data_(data),
        bytes_(bytes),
        pending_(std::move(pending)) {}
  ~Block();
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  Tag tag() const { return tag_; }
  std::size_t bytes() const { return bytes_; }
  Memory memory() const { return memory_; }

  // The memory, for the next work enqueued on `stream`: notes the use, and makes the stream wait
  // for what earlier owners of this memory still have under way; each stream that uses it.
  std::byte* on(Stream& stream);
  // The memory, for the host, where it is host-visible: waits for earlier owners. The caller has
  // waited for its own writers.
  std::byte* on_host();

 private:
  friend class Pool;

  // Which buffer of which step it is, where that is planned.
  struct Number {
    std::uint64_t step = 0;
    std::int64_t buffer = 0;
  };

  Pool* pool_;
  Tag tag_;
  Memory memory_;
  Reuse reuse_;
  std::byte* data_;
  std::size_t bytes_;
  Number number_{};
  std::vector<Event> pending_;  // last uses by earlier owners
  std::vector<Event> uses_;     // last uses by this one, one a stream
};

struct PoolUse {
  std::size_t bytes = 0;  // requested now
  std::size_t peak = 0;   // largest so far
};

// Is told of every block of a pool, on the host thread, as the pool counts it: `taken` when its
// bytes have been added, `given` before they are subtracted.
class PoolWatcher {
 public:
  virtual ~PoolWatcher() = default;
  virtual void taken(const Block& block) = 0;
  virtual void given(const Block& block) = 0;
};

// What a step does to the memory of a pool, as a rehearsal of it showed: one on a device that
// computes nothing.
struct Rehearsal {
  WatchedStep step;
  std::size_t counted = 0;  // at one time, in the whole pool
  std::size_t others = 0;   // taken from the device beside what lives within the step
};

class Pool {
 public:
  // `watcher`, where there is one, outlives the pool. Of a pool that is watched the bytes count,
  // not where they lie: it plans no places for the next step.
  explicit Pool(Device& device, PoolWatcher* watcher = nullptr);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // What is allocated from now on belongs to the next node, and is first used on `stream`.
  void allocate_for(const Stream& stream) {
    user_ = &stream;
    if (step_ != nullptr) step_->next_node();
  }
  // SystemError where the device has no more, with what this rank has by tag.
  std::shared_ptr<Block> allocate(std::size_t bytes,
                                  Tag tag,
                                  Memory memory = Memory::Device,
                                  Reuse reuse = Reuse::InOrder);

  // Puts free memory together, while all streams are idle: every step starts alike. `kind`:
  // anything that is the same for steps that take memory alike; null for none of those.
  void settle(const void* kind = nullptr);
  // The step under way, when it has given back what it took; all streams are idle. One whose first
  // run it is.
  Rehearsal rehearsal() const;
  // The first step of this kind will be like that one.
  void expect(const void* kind, const Rehearsal& rehearsal);

  PoolUse use(Tag tag) const { return use_[static_cast<std::size_t>(tag)]; }
  PoolUse total() const { return total_; }  // of the device's tags
  // What was taken from the device for all this, of its own memory.
  std::size_t reserved() const;
  // The most that this ever was: a plan of the next step gives some of it back.
  std::size_t most_reserved() const { return most_reserved_; }
  void reset_peaks();

 private:
  friend class Block;
  class ExchangeArena;

  struct Taken;
  Taken take(std::size_t bytes, Tag tag, Memory memory, Reuse reuse);
  bool take_place(const Place& place, std::size_t bytes, Taken& taken);
  void plan_step();
  void make_room();
  void note_reserved();
  Arena& arena_of(Tag tag, Memory memory, std::size_t bytes);
  std::size_t may_grow(std::size_t bytes) const;
  void release(const Block& block, std::vector<Event> uses);
  std::string in_use() const;

  PoolWatcher* const watcher_;
  const Stream* user_ = nullptr;  // none: the host
  std::map<const void*, StepMemory> step_memories_;
  StepMemory* step_ = nullptr;  // of the step under way
  std::uint64_t steps_ = 0;
  std::unique_ptr<Arena> lasting_arena_;           // weights, gradients, optimizer
  std::unique_ptr<Arena> passing_arena_;           // activations, communication, workspace
  std::unique_ptr<Arena> small_arena_;             // the small ones of them
  std::unique_ptr<Arena> visible_arena_;           // of those tags: Memory::HostVisible
  std::unique_ptr<Arena> offloaded_arena_;         // offloaded; host-visible too
  std::unique_ptr<ExchangeArena> exchange_arena_;  // of all tags: Reuse::Exchanged
  std::array<PoolUse, kTags> use_{};
  PoolUse total_;
  std::size_t most_at_once_ = 0;  // the peak of all time
  std::size_t most_reserved_ = 0;
};

}  // namespace weft::tensor
