// What the memory of many runs is made of, looked up once: what a layer keeps, from the bytes that
// its pieces declare, and which micro-batches of a pipeline rank are in flight together, from the
// order of its turns.
//
// A book is of runs that differ in their layout and in what the planner turns, and are else the
// same. Safe to use from several threads; what it says does not depend on who comes first.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "weft/config/config.h"
#include "weft/plan/layer_time.h"

namespace weft::plan {

// Bytes of one micro-batch.
struct KeptLayer {
  double kept = 0;   // between forward and backward
  double again = 0;  // on top of it at most, while its backward runs
};

// Micro-batches whose forward is there and whose backward is not over, by chunk of the rank.
using Flight = std::vector<int>;

class MemoryBook {
 public:
  // Of a layer of the config, by a small run of such layers. `imbalance`: rows over the mean.
  KeptLayer layer(const config::Config& config,
                  std::int64_t layer,
                  Recomputed whole,
                  double imbalance);

  // By pipeline rank: every one that some moment of the step has, without those of which another
  // has as much of every chunk.
  std::vector<std::vector<Flight>> flights(const config::Config& config);

 private:
  std::mutex mutex_;
  std::map<std::string, KeptLayer> layers_;
  std::map<std::string, std::vector<std::vector<Flight>>> flights_;
};

}  // namespace weft::plan
