// How many bytes of weights, gradients and optimizer state a rank keeps. Activations are not here.
#pragma once

#include <cstdint>
#include <vector>

#include "weft/config/config.h"
#include "weft/derive/parameters.h"

namespace weft::derive {

// For one parameter, before anything is sharded.
struct ParameterBytes {
  std::int64_t weight = 0;
  std::int64_t gradient = 0;
  std::int64_t optimizer = 0;  // moments, and a master weight where the weight is not fp32
};
// Muon keeps one moment where Adam keeps two, and Adam for what is no matrix: counted as Adam.
ParameterBytes bytes_of_parameter(const config::Config& config);

// Whether the optimizer keeps of its fp32 master weights only the 16 bits that bf16 weights lack.
// Not where state is offloaded: the host has no weights that lack them.
bool keeps_remainders(const config::Config& config);
// Whether they are fp16.
bool keeps_half_masters(const config::Config& config);

// Of so many ranks that hold the same parameters, those that share one copy of their optimizer's
// state: the ranks of an instance, where the optimizer is distributed.
std::int64_t ranks_of_instance(const config::Config& config, std::int64_t ranks);

struct StateBytes {
  std::int64_t weights = 0;
  std::int64_t gradients = 0;
  std::int64_t optimizer = 0;
  std::int64_t offloaded = 0;  // optimizer state in host memory, with a master weight of every kind
  // Of the device's memory.
  std::int64_t total() const { return weights + gradients + optimizer; }
};

// Of a rank with these parameters. A distributed optimizer shares optimizer state between dp * cp
// ranks, that of experts between edp, or those of them that are one of its instances; a fully
// sharded run shares what its strategy says.
StateBytes state_bytes(const config::Config& config, const RankParameters& parameters);

}  // namespace weft::derive
