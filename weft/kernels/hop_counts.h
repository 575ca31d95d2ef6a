// What plan_hops makes of the counts of all ranks (kernels.h), where the host reads them.
#pragma once

#include <cstdint>
#include <optional>

#include "weft/kernels/kernels.h"
#include "weft/tensor/fault.h"

namespace weft::kernels {

// Counts come from other ranks, so they are checked before they are used.
struct HopCounts {
  const std::int64_t* counts = nullptr;  // a line a rank
  std::int64_t stride = 0;               // from one line to the next
  Hops hops;

  // The first number that its member cannot have.
  std::optional<tensor::Fault> fault() const;
  // False, and zeros, where somebody's budget is not enough.
  bool split(std::int64_t* splits) const;

 private:
  const std::int64_t* line(std::int64_t source) const { return counts + source * stride; }
  std::int64_t to_machine(std::int64_t source, std::int64_t machine) const;
  std::int64_t to_rank(std::int64_t source, std::int64_t rank) const;
  std::int64_t slots(std::int64_t source, std::int64_t rank) const;
  std::int64_t arriving(std::int64_t rank) const;
};

}  // namespace weft::kernels
