// Packing of a step's buffers: the plan needs little more than the largest sum of bytes alive at
// one time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace weft::tensor {

// Part of a region.
struct Extent {
  std::size_t offset = 0;
  std::size_t bytes = 0;
};

// Minimum age of free memory before a stream that must wait for its last use may get it. Age counts
// times since the buffer was given back: from never to at once.
inline constexpr std::array<std::int32_t, 6> kAges{std::numeric_limits<std::int32_t>::max(),
                                                   512,
                                                   128,
                                                   32,
                                                   8,
                                                   0};

// Lifetime of a buffer in a step. Times number the allocations and releases of the step.
struct Lifetime {
  static constexpr std::int32_t kNever = std::numeric_limits<std::int32_t>::max();

  std::size_t bytes = 0;
  bool varies = false;  // size differs from step to step
  std::int32_t taken = 0;
  std::int32_t given = kNever;
  int user = 0;  // stream that first uses it
  // by user: time from which that stream's new work comes after this buffer's last use
  std::vector<std::int32_t> known_from{};
};

// Lowest place from `at` on for `bytes` beside the sorted extents `taken`; drops the extents that
// it has passed from `taken`.
std::size_t lowest_beside(std::span<const Extent>& taken, std::size_t at, std::size_t bytes);

struct Packing {
  std::vector<std::size_t> offsets;  // by buffer
  std::size_t top = 0;               // end of the highest buffer
  std::size_t age = 0;               // index into kAges of this plan
  // By buffer that varies: places of fixed buffers that are alive meanwhile, by offset.
  std::vector<std::vector<Extent>> kept;
};

// Places all buffers; no two that are alive together overlap, and none overlaps `occupied`. Buffers
// of fixed size come first, largest first, each as low as possible. Buffers that vary follow in
// order of allocation, because run time places them again, with known sizes.
//
// While all buffers end below `most`, no stream gets memory whose last use it must wait for.
// Otherwise streams also get such memory, the oldest first, by kAges from `first_age` on. nullopt:
// the step has too many buffers.
std::optional<Packing> pack(std::span<const Lifetime> buffers,
                            std::span<const Extent> occupied,
                            std::size_t most,
                            std::size_t first_age = 0);

}  // namespace weft::tensor
