// Access of host work to device memory while it runs in a stream's order (Stream::enqueue_host).
// Ranks exchange and sum bytes through it.
//
// Every function returns when its work is done. Addresses are device, host-visible or host memory;
// device memory may belong to another rank of this process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "weft/tensor/dtype.h"

namespace weft::tensor {

enum class Reduce { Sum, Max };

// Throws InternalError if reductions do not take the dtype. They take fp32, bf16 (summed in fp32
// and rounded once), fp64 and int64.
void check_reducible(DType dtype);

struct Copy {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  std::int64_t bytes = 0;
};

class Transfers {
 public:
  virtual ~Transfers() = default;

  // Source and destination may overlap.
  virtual void copy(std::byte* to, const std::byte* from, std::int64_t bytes) = 0;
  // Copies a part of a large copy whose destination is not read soon. No overlap.
  virtual void copy_away(std::byte* to, const std::byte* from, std::int64_t bytes) {
    copy(to, from, bytes);
  }
  // Runs two lists of copies concurrently, each in any order, as a link carries both directions. A
  // list touches nothing that the other writes, and no copy overlaps itself.
  virtual void copy_both(std::span<const Copy> some, std::span<const Copy> others) = 0;
  // Copies many pieces within device memory, and runs `meanwhile` beside them, which touches none
  // of their memory. No piece overlaps another or itself.
  virtual void copy_pieces(std::span<const Copy> pieces, const std::function<void()>& meanwhile) {
    for (const auto& [to, from, bytes] : pieces) copy(to, from, bytes);
    meanwhile();
  }
  void copy_pieces(std::span<const Copy> pieces) {
    copy_pieces(pieces, [] {});
  }
  virtual void clear(std::byte* to, std::int64_t bytes) = 0;

  // Largest part of each rank's data that a reduction handles at a time: small enough to stay in
  // the cache, large enough to be worth a launch. Equal on all ranks of a run.
  virtual std::int64_t segment_bytes() const { return 1 << 20; }
  // out[i] = sources[0][i] + sources[1][i] + ..., in that order and dtype; or the maximum, NaN if
  // any source is. `out` may be one of the sources.
  virtual void reduce(DType dtype,
                      Reduce reduce,
                      std::byte* out,
                      std::span<const std::byte* const> sources,
                      std::int64_t elements) = 0;

  // Device memory outside any pool, freed with the handle.
  virtual std::shared_ptr<std::byte> scratch(std::int64_t bytes) = 0;
  // Host-visible memory outside any pool, freed with the handle.
  virtual std::shared_ptr<std::byte> host_scratch(std::int64_t bytes) = 0;

  // Address at which host threads and libraries reach these bytes; nullptr: they cannot, and must
  // copy.
  virtual std::byte* on_host(const std::byte* memory) = 0;
};

}  // namespace weft::tensor
