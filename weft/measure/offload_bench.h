// Offloaded AdamW against what the link to the host and the host's memory can do: a run's own steps
// are traced, and the time from `clip` to the last weights that are back is held against the rates
// of both, measured in the same run.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>

#include "weft/rules/judged_config.h"

namespace weft::measure {

struct OffloadBench {
  std::int64_t parameters = 0;  // whose state is in host memory
  std::int64_t buckets = 0;
  double seconds = 0;       // of the end of a step, median
  double step_seconds = 0;  // of the whole step, median
  double memory_bytes = 0;  // that the host's cores read and write
  double down_bytes = 0, up_bytes = 0;
  double memory_rate = 0;  // of a copy by the same threads: bytes read and written a second
  double down_rate = 0, up_rate = 0;

  double rate() const { return memory_bytes / seconds; }
  double memory_seconds() const { return memory_bytes / memory_rate; }
  // Each way has a lane of its own.
  double link_seconds() const { return std::max(down_bytes / down_rate, up_bytes / up_rate); }
  bool is_bound_by_link() const { return link_seconds() > memory_seconds(); }
  double share() const;  // of the rate of whichever is slower
};

struct OffloadBenchRequest {
  rules::JudgedConfig config;  // one rank with offloaded optimizer state
  int steps = 5;               // timed, after two that warm up
  std::function<void(int done, int of)> progress;
  const std::atomic<bool>* stop = nullptr;  // ends it between two steps, with nothing measured
};

OffloadBench bench_offload(const OffloadBenchRequest& request);

}  // namespace weft::measure
