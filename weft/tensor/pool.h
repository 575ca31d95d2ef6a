// Memory of a rank: every allocation belongs to its pool under a tag, and peaks are exact.
//
// The host thread allocates and releases in issue order; the work that uses a buffer runs later on
// streams. A released buffer therefore carries the positions of its last uses, and its next owner
// waits for them. Such a wait can undo the overlap of a schedule. The pool first gives memory to
// streams that already come after its last uses. It then takes more from the device, up to a small
// surplus over the counted bytes. Last, it makes a stream wait.
//
// A step that names its kind gets places planned from earlier runs of that kind
// (tensor/step_memory.h). Separate regions hold: memory for the whole run, memory of a step, small
// pieces of a step, host-visible memory, and offloaded memory. Equal sequences of calls get equal
// addresses in every step, except after a step that made a new plan. Counted bytes are the
// requested bytes, in any memory, and equal on every device.
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

// Piece of pool memory, held by shared handles (tensors and their views). The last handle gives it
// back.
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

  // Memory for the next work enqueued on `stream`. Notes the use, and makes the stream wait for
  // uses by earlier owners that are in flight. Every stream that uses the block calls this.
  std::byte* on(Stream& stream);
  // Memory for the host; host-visible only. Waits for earlier owners; the caller has waited for its
  // own writers.
  std::byte* on_host();

 private:
  friend class Pool;

  // Index of the buffer within its step, if the step is planned.
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
  std::vector<Event> uses_;     // last uses by this block, one per stream
};

struct PoolUse {
  std::size_t bytes = 0;  // requested now
  std::size_t peak = 0;   // largest so far
};

// Observer of a pool's blocks, called on the host thread: `taken` after the bytes are added,
// `given` before they are subtracted.
class PoolWatcher {
 public:
  virtual ~PoolWatcher() = default;
  virtual void taken(const Block& block) = 0;
  virtual void given(const Block& block) = 0;
};

// Memory profile of a step, from a rehearsal on a device that computes nothing.
struct Rehearsal {
  WatchedStep step;
  std::size_t counted = 0;  // peak of the whole pool
  std::size_t others = 0;   // taken from the device outside the step's region
};

class Pool {
 public:
  // `watcher` (nullptr: none) outlives the pool. A watched pool only counts bytes: it plans no
  // places.
  explicit Pool(Device& device, PoolWatcher* watcher = nullptr);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // Starts the next node: later allocations belong to it, and `stream` uses them first.
  void allocate_for(const Stream& stream) {
    user_ = &stream;
    if (step_ != nullptr) step_->next_node();
  }
  // Throws SystemError, with this rank's bytes by tag, if the device has no more memory.
  std::shared_ptr<Block> allocate(std::size_t bytes,
                                  Tag tag,
                                  Memory memory = Memory::Device,
                                  Reuse reuse = Reuse::InOrder);

  // Merges free memory and begins a step, while all streams are idle; every step starts from equal
  // state. `kind` identifies steps that allocate alike; nullptr: not planned.
  void settle(const void* kind = nullptr);
  // Profile of the current step, after it released its memory; all streams are idle. The step must
  // be the first run of its kind.
  Rehearsal rehearsal() const;
  // Plans the first step of this kind from the profile.
  void expect(const void* kind, const Rehearsal& rehearsal);

  PoolUse use(Tag tag) const { return use_[static_cast<std::size_t>(tag)]; }
  PoolUse total() const { return total_; }  // sum over the device's tags
  // Bytes of device memory taken for all tags.
  std::size_t reserved() const;
  // Largest value of reserved() so far; a new plan may give memory back.
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
  const Stream* user_ = nullptr;  // nullptr: the host
  std::map<const void*, StepMemory> step_memories_;
  StepMemory* step_ = nullptr;  // memory of the current step
  std::uint64_t steps_ = 0;
  std::unique_ptr<Arena> lasting_arena_;           // weights, gradients, optimizer
  std::unique_ptr<Arena> passing_arena_;           // activations, communication, workspace
  std::unique_ptr<Arena> small_arena_;             // small pieces of the passing tags
  std::unique_ptr<Arena> visible_arena_;           // all tags but Offloaded: Memory::HostVisible
  std::unique_ptr<Arena> offloaded_arena_;         // Tag::Offloaded, also host-visible
  std::unique_ptr<ExchangeArena> exchange_arena_;  // all tags: Reuse::Exchanged
  std::array<PoolUse, kTags> use_{};
  PoolUse total_;
  std::size_t most_at_once_ = 0;  // peak over the pool's life
  std::size_t most_reserved_ = 0;
};

}  // namespace weft::tensor
