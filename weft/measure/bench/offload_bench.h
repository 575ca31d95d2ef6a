// Offloaded AdamW against the limits of the link and of host memory. The run's own steps are
// traced. The time from `clip` to the last uploaded weights is compared with both rates, measured
// in the same run.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>

#include "weft/rules/judged_config.h"

namespace weft::measure {

struct OffloadBench {
  std::int64_t parameters = 0;  // with state in host memory
  std::int64_t buckets = 0;
  double seconds = 0;       // end of a step, median
  double step_seconds = 0;  // whole step, median
  double memory_bytes = 0;  // bytes that the host's cores read and write
  double down_bytes = 0, up_bytes = 0;
  double memory_rate = 0;  // copy by equal threads: bytes read and written per second
  double down_rate = 0, up_rate = 0;

  double rate() const { return memory_bytes / seconds; }
  double memory_seconds() const { return memory_bytes / memory_rate; }
  // Each direction has its own lane.
  double link_seconds() const { return std::max(down_bytes / down_rate, up_bytes / up_rate); }
  bool is_bound_by_link() const { return link_seconds() > memory_seconds(); }
  double share() const;  // achieved share of the slower of both rates
};

struct OffloadBenchRequest {
  rules::JudgedConfig config;  // one rank with offloaded optimizer state
  int steps = 5;               // timed steps, after two warm-up steps
  std::function<void(int done, int of)> progress;
  const std::atomic<bool>* stop = nullptr;
};

// Throws Stopped when told to stop.
OffloadBench bench_offload(const OffloadBenchRequest& request);

}  // namespace weft::measure
