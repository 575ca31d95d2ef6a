// Which part of the optimizer's state lies in host memory (optimizer.optimizer_cpu_offload), and in
// which buckets it is changed there.
//
// A rank keeps the state of a share of each bucket of its gradients: all of it, or with a
// distributed optimizer an equal part. Of every share the first elements are offloaded, as many as
// the fraction says, so that every rank and every bucket has the same work. They travel in buckets
// of their own, because a gradient bucket may be far larger than what should wait in host memory.
#pragma once

#include <cstdint>
#include <vector>

#include "weft/base/slice.h"
#include "weft/config/config.h"

namespace weft::derive {

// Whether one bucket travels while another is changed (optimizer.overlap_cpu_optimizer_d2h_h2d).
enum class OffloadOrder { OneByOne, Overlapped };

struct OptimizerOffload {
  double fraction = 0;           // of every share; 0: nothing is offloaded
  std::int64_t bucket_size = 0;  // elements
  OffloadOrder order = OffloadOrder::OneByOne;

  bool is_on() const { return fraction > 0; }
  // Buckets that may be between device and host at one time.
  int slots() const { return order == OffloadOrder::Overlapped ? 2 : 1; }
  // Of a share of so many elements, those in host memory: the first ones.
  std::int64_t elements(std::int64_t share) const;
  // The same in buckets of nearly one size.
  std::vector<base::Range> buckets(std::int64_t share) const;
};

OptimizerOffload optimizer_offload(const config::Config& config);

}  // namespace weft::derive
