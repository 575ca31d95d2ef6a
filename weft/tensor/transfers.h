// What work of the host may do with device memory while it runs in a stream's order
// (Stream::enqueue_host): ranks exchange bytes so, and sum them.
//
// Every function has done its work when it returns. Addresses are of device memory, of host-visible
// memory or of the host's own; device memory may be that of another rank of this process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "weft/tensor/dtype.h"

namespace weft::tensor {

enum class Reduce { Sum, Max };

// Throws InternalError for a dtype that reductions do not take: they take fp32, bf16
// (summed in fp32 and rounded once), fp64 and int64.
void check_reducible(DType dtype);

struct Copy {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  std::int64_t bytes = 0;
};

class Transfers {
 public:
  virtual ~Transfers() = default;

  // The two may overlap.
  virtual void copy(std::byte* to, const std::byte* from, std::int64_t bytes) = 0;
  // A part of a large copy to where nobody reads soon. The two do not overlap.
  virtual void copy_away(std::byte* to, const std::byte* from, std::int64_t bytes) {
    copy(to, from, bytes);
  }
  // Two lists of copies beside each other, each in any order, as a link carries both directions at
  // once. What one list writes the other does not touch, and no copy overlaps itself.
  virtual void copy_both(std::span<const Copy> some, std::span<const Copy> others) = 0;
  // Many copies inside device memory, and beside them what `meanwhile` asks for, which touches
  // nothing of theirs. None overlaps another or itself.
  virtual void copy_pieces(std::span<const Copy> pieces, const std::function<void()>& meanwhile) {
    for (const auto& [to, from, bytes] : pieces) copy(to, from, bytes);
    meanwhile();
  }
  void copy_pieces(std::span<const Copy> pieces) {
    copy_pieces(pieces, [] {});
  }
  virtual void clear(std::byte* to, std::int64_t bytes) = 0;

  // So much of every rank a reduction holds at most at a time: what is still in the cache when it
  // is summed, or what a launch is worth. The same on all ranks of a run.
  virtual std::int64_t segment_bytes() const { return 1 << 20; }
  // out[i] = sources[0][i] + sources[1][i] + ..., in that order and in that dtype; or their
  // maximum, which is NaN where any is. `out` may be one of the sources.
  virtual void reduce(DType dtype,
                      Reduce reduce,
                      std::byte* out,
                      std::span<const std::byte* const> sources,
                      std::int64_t elements) = 0;

  // Device memory outside any pool, until the handle goes.
  virtual std::shared_ptr<std::byte> scratch(std::int64_t bytes) = 0;
  // The same of host-visible memory.
  virtual std::shared_ptr<std::byte> host_scratch(std::int64_t bytes) = 0;

  // Where the host's own threads, and libraries on them, reach the same bytes; null where they
  // cannot and must copy.
  virtual std::byte* on_host(const std::byte* memory) = 0;
};

}  // namespace weft::tensor
