// Bytes of weights, gradients and optimizer state per rank, without activations.
#pragma once

#include <cstdint>
#include <vector>

#include "weft/config/config.h"
#include "weft/derive/parameters.h"

namespace weft::derive {

// Bytes per parameter, before sharding.
struct ParameterBytes {
  std::int64_t weight = 0;
  std::int64_t gradient = 0;
  std::int64_t optimizer = 0;  // moments, and a master weight unless weights are fp32
};
// Counted as Adam for every optimizer: Muon keeps one moment instead of two, and uses Adam for
// parameters that are no matrices.
ParameterBytes bytes_of_parameter(const config::Config& config);

// True if the optimizer keeps, of fp32 master weights, only the 16 bits that bf16 weights lack.
// False with offloaded state: the host has no weights to complete them.
bool keeps_remainders(const config::Config& config);
// True if master weights are fp16.
bool keeps_half_masters(const config::Config& config);

// Among `ranks` with equal parameters, the ranks that share one copy of the optimizer state: those
// of one instance of a distributed optimizer.
std::int64_t ranks_of_instance(const config::Config& config, std::int64_t ranks);

struct StateBytes {
  std::int64_t weights = 0;
  std::int64_t gradients = 0;
  std::int64_t optimizer = 0;
  std::int64_t offloaded = 0;  // optimizer state in host memory, always with master weights
  // Bytes of device memory.
  std::int64_t total() const { return weights + gradients + optimizer; }
};

// State of a rank with these parameters. A distributed optimizer shards state over dp * cp ranks,
// experts' state over edp ranks; or over one instance among them. A fully sharded run shards by its
// strategy.
StateBytes state_bytes(const config::Config& config, const RankParameters& parameters);

}  // namespace weft::derive
