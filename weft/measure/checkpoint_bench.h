// Checkpoints against what the machine can do, in one run: the copy against memcpy on all threads
// of the rank, writing and reading against plain writes and reads of as many bytes, and what a save
// beside the run adds to the steps it runs beside.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "weft/rules/judged_config.h"

namespace weft::measure {

struct CheckpointBenchRequest {
  rules::JudgedConfig config;  // one rank that saves beside the run (derive::saves_beside)
  int steps = 10;              // between two saves
  int rounds = 4;              // even: which way reads first changes from round to round
  std::function<void(int done, int of)> progress;
  const std::atomic<bool>* stop = nullptr;  // ends it between two parts, with nothing measured
};

// Bytes a second, and those of the plain way in the same round; of each the median.
struct RatePair {
  double own = 0, plain = 0;
  double share = 0;  // median of the rounds' shares
};

struct CheckpointBench {
  std::int64_t bytes = 0;      // of the state
  double checksum = 0;         // bytes a second
  RatePair copy, write, read;  // reading with nothing of the file in the system's cache
  double step_seconds = 0;     // median of those beside which nothing is saved
  double save_seconds = 0;     // median, from begin to whole
  // What a save adds to the steps from one to the next, the copy aside; of their time.
  double overhead = 0;
  // The same of the time of all cores in use: less disturbed by whatever else the machine does.
  double cpu_overhead = 0;
};

CheckpointBench bench_checkpoint(const CheckpointBenchRequest& request);

}  // namespace weft::measure
