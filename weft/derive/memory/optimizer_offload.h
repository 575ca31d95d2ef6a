// Part of the optimizer state in host memory (optimizer.optimizer_cpu_offload), and the buckets of
// its update.
//
// A rank keeps the state of a share of each gradient bucket: all of it or, with a distributed
// optimizer, an equal part. The first elements of every share are offloaded, by the fraction, so
// that all ranks and buckets have equal work. They travel in separate buckets, because a gradient
// bucket may be too large for host buffers.
#pragma once

#include <cstdint>
#include <vector>

#include "weft/base/slice.h"
#include "weft/config/config.h"

namespace weft::derive {

// Overlapped: one bucket travels while another is updated
// (optimizer.overlap_cpu_optimizer_d2h_h2d).
enum class OffloadOrder { OneByOne, Overlapped };

struct OptimizerOffload {
  double fraction = 0;           // fraction of every share; 0: no offload
  std::int64_t bucket_size = 0;  // elements
  OffloadOrder order = OffloadOrder::OneByOne;

  bool is_on() const { return fraction > 0; }
  // Buckets that may be in flight at one time.
  int slots() const { return order == OffloadOrder::Overlapped ? 2 : 1; }
  // Offloaded elements of a share: the first ones.
  std::int64_t elements(std::int64_t share) const;
  // Offloaded elements in buckets of nearly equal size.
  std::vector<base::Range> buckets(std::int64_t share) const;
};

OptimizerOffload optimizer_offload(const config::Config& config);

}  // namespace weft::derive
