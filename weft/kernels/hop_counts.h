// Host side of plan_hops (kernels.h): row counts of all ranks.
#pragma once

#include <cstdint>
#include <optional>

#include "weft/kernels/kernels.h"
#include "weft/tensor/fault.h"

namespace weft::kernels {

// Counts come from other ranks, so they are checked before use.
struct HopCounts {
  const std::int64_t* counts = nullptr;  // one line per rank
  std::int64_t stride = 0;               // elements between lines
  Hops hops;

  // Fault of the first number that is out of range for its rank.
  std::optional<tensor::Fault> fault() const;
  // False, and all splits zero, if any rank's slots exceed the budget.
  bool split(std::int64_t* splits) const;

 private:
  const std::int64_t* line(std::int64_t source) const { return counts + source * stride; }
  std::int64_t to_machine(std::int64_t source, std::int64_t machine) const;
  std::int64_t to_rank(std::int64_t source, std::int64_t rank) const;
  std::int64_t slots(std::int64_t source, std::int64_t rank) const;
  std::int64_t arriving(std::int64_t rank) const;
};

}  // namespace weft::kernels
