// A rank's memory: every allocation belongs to its pool under a tag, and peaks are exact.
//
// Allocation and release happen on the host thread, in issue order, while the work that uses a
// buffer runs later on streams. So a released buffer carries the positions of its last uses, and
// whoever gets that memory next waits for them. Each tag has its own arena: compute buffers never
// inherit a wait for communication. The same sequence of requests gets the same addresses, step
// after step.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "weft/tensor/stream.h"

namespace weft::tensor {

// Which memory a buffer may get. InOrder: any that was released before, waiting for its last uses.
// WhenIdle: only memory whose last uses are over. That is for what pipeline stages exchange: a
// buffer that waits for an earlier send waits for another rank, an order no schedule knows of, and
// two ranks that wait so for each other wait for ever. Such buffers are apart from all others; what
// is counted stays exact, but addresses may differ from step to step.
enum class Reuse { InOrder, WhenIdle };

enum class Tag { Weights, Gradients, Optimizer, Activations, Communication, Workspace };
inline constexpr int kTags = 6;
std::string_view name_of(Tag tag);

class Pool;

// A piece of pool memory. Held by shared handles (tensors and their views); goes back with the last
// one.
class Block {
 public:
  Block(Pool* pool,
        Tag tag,
        Reuse reuse,
        std::byte* data,
        std::size_t bytes,
        std::vector<Event> pending)
      : pool_(pool),
        tag_(tag),
        reuse_(reuse),
        data_(data),
        bytes_(bytes),
        pending_(std::move(pending)) {}
  ~Block();
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  std::size_t bytes() const { return bytes_; }

  // The memory, for the next work enqueued on `stream`: notes the use, and makes the stream wait
  // for what earlier owners of this memory still have under way.
  std::byte* on(Stream& stream);
  // The memory, for the host: waits for earlier owners. The caller has waited for its own writers.
  std::byte* on_host();

 private:
  friend class Pool;

  Pool* pool_;
  Tag tag_;
  Reuse reuse_;
  std::byte* data_;
  std::size_t bytes_;
  std::vector<Event> pending_;  // last uses by earlier owners
  std::vector<Event> uses_;     // last uses by this one, one a stream
};

struct PoolUse {
  std::size_t bytes = 0;  // requested now
  std::size_t peak = 0;   // largest so far
};

class Pool {
 public:
  Pool();
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  std::shared_ptr<Block> allocate(std::size_t bytes, Tag tag, Reuse reuse = Reuse::InOrder);

  PoolUse use(Tag tag) const { return use_[static_cast<std::size_t>(tag)]; }
  PoolUse total() const { return total_; }
  void reset_peaks();

 private:
  friend class Block;
  class Arena;
  class IdleArena;

  void release(const Block& block, std::vector<Event> uses);

  std::array<std::unique_ptr<Arena>, kTags> arenas_;
  std::unique_ptr<IdleArena> idle_arena_;  // of all tags: Reuse::WhenIdle
  std::array<PoolUse, kTags> use_{};
  PoolUse total_;
};

}  // namespace weft::tensor
