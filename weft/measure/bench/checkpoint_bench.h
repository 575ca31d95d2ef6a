// Checkpoint speed against the machine's limits, in one run: the snapshot against memcpy on all
// threads of the rank; writing and reading against plain writes and reads of equal size; the time
// that an asynchronous save adds to the concurrent steps.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "weft/rules/judged_config.h"

namespace weft::measure {

struct CheckpointBenchRequest {
  rules::JudgedConfig config;  // one rank with asynchronous saves (derive::saves_beside)
  int steps = 10;              // between two saves
  int rounds = 4;              // even: the first reader alternates from round to round
  std::function<void(int done, int of)> progress;
  const std::atomic<bool>* stop = nullptr;
};

// Bytes per second of our way and of the plain way in the same round; medians.
struct RatePair {
  double own = 0, plain = 0;
  double share = 0;  // median of the rounds' shares
};

struct CheckpointBench {
  std::int64_t bytes = 0;      // size of the state
  double checksum = 0;         // bytes per second
  RatePair copy, write, read;  // reading starts with an empty page cache
  double step_seconds = 0;     // median of the steps without a concurrent save
  double save_seconds = 0;     // median, from begin to complete
  // Share of step time that saving adds from one save to the next, without the snapshot.
  double overhead = 0;
  // Variant for the CPU time of all cores: less disturbed by other programs.
  double cpu_overhead = 0;
};

// Throws Stopped when told to stop.
CheckpointBench bench_checkpoint(const CheckpointBenchRequest& request);

}  // namespace weft::measure
