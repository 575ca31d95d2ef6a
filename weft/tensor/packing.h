// WHERE do the buffers of a step lie, so that they take little more than what is alive at one time?
#pragma once

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

// A buffer of a step. Times are running numbers of what was taken and given back.
struct Lifetime {
  static constexpr std::int32_t kNever = std::numeric_limits<std::int32_t>::max();

  std::size_t bytes = 0;
  std::int32_t taken = 0;
  std::int32_t given = kNever;
  int user = 0;                            // the stream that it is first used on
  std::vector<std::int32_t> known_from{};  // by user: from when on that stream's work comes after
                                           // the last use of this buffer anyway
};

struct Packing {
  std::vector<std::size_t> offsets;  // by buffer
  std::size_t top = 0;               // the end of the highest
};

// Places for all buffers, none of which overlaps with another that is alive at the same time, nor
// with what is `occupied` throughout. As far as the buffers then end below `most`, no stream gets
// memory whose last use its work does not come after anyway; else memory is given to such a stream
// too, that which was given back longest ago. None for a step that is too long for it.
std::optional<Packing> pack(std::span<const Lifetime> buffers,
                            std::span<const Extent> occupied,
                            std::size_t most);

}  // namespace weft::tensor
