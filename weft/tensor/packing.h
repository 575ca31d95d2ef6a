// WHERE do the buffers of a step lie, so that they take little more than what is alive at one time?
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace weft::tensor {

// A part of a region.
struct Extent {
  std::size_t offset = 0;
  std::size_t bytes = 0;
};

// How long ago a buffer must have been given back, in such times, before a stream that does not
// know of its last use gets its memory: from never to at once.
inline constexpr std::array<std::int32_t, 6> kAges{std::numeric_limits<std::int32_t>::max(),
                                                   512,
                                                   128,
                                                   32,
                                                   8,
                                                   0};

// A buffer of a step. Times are running numbers of what was taken and given back.
struct Lifetime {
  static constexpr std::int32_t kNever = std::numeric_limits<std::int32_t>::max();

  std::size_t bytes = 0;
  bool varies = false;  // is of another size whenever the step runs
  std::int32_t taken = 0;
  std::int32_t given = kNever;
  int user = 0;                            // the stream that it is first used on
  std::vector<std::int32_t> known_from{};  // by user: from when on that stream's work comes after
                                           // the last use of this buffer anyway
};

// The lowest place from `at` on for so many bytes beside what is taken, which is sorted; goes on
// with what of it was not looked at so far.
std::size_t lowest_beside(std::span<const Extent>& taken, std::size_t at, std::size_t bytes);

struct Packing {
  std::vector<std::size_t> offsets;  // by buffer
  std::size_t top = 0;               // the end of the highest
  std::size_t age = 0;               // the one of kAges that this was made with
  // By buffer, of those that vary: places of others that are taken while it is there, by offset.
  std::vector<std::vector<Extent>> kept;
};

// Places for all buffers, none of which overlaps with another that is alive at the same time, nor
// with what is `occupied` throughout. First those that never vary, the largest first, each as low
// as it goes; then those that vary, one after the other as they are taken: so they can be placed as
// well when the step runs and their sizes are known. As far as the buffers then end below `most`,
// no stream gets memory whose last use its work does not come after anyway; else memory is given to
// such a stream too, that which was given back longest ago, by kAges from `first_age`
// on. None for a step that is too long for it.
std::optional<Packing> pack(std::span<const Lifetime> buffers,
                            std::span<const Extent> occupied,
                            std::size_t most,
                            std::size_t first_age = 0);

}  // namespace weft::tensor
