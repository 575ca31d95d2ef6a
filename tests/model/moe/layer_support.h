// MoE layer without its router, on several ranks. Given choices and probabilities pass every stage
// of a dispatcher and the experts, forward and backward.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "weft/comm/launch.h"
#include "weft/model/moe/experts.h"

namespace weft::model {

struct LayerCase {
  std::string name;
  config::Dispatcher dispatcher = config::Dispatcher::AllToAll;
  int per_machine = 0;                    // hybridep: ranks per machine; 0: not hybridep
  int shards = 1;                         // ranks that share an expert
  std::vector<std::int64_t> tokens = {};  // per rank
  std::int64_t experts = 8, k = 2, hidden = 20, width = 12;
  std::vector<std::int32_t> choices = {};  // of all tokens, (T, k); -1: dropped
  std::optional<double> capacity = {};     // drop-and-pad
  std::optional<double> budget = {};       // rows of a rank, relative to the mean

  int ranks() const { return static_cast<int>(tokens.size()); }
  std::int64_t all_tokens() const;
};

config::ModelConfig model_of(const LayerCase& layer);

// Results over all tokens and all experts, in order.
struct LayerOutcome {
  std::vector<float> y, dx, dp, dfc1, dfc2;
  double overflow = 0;
  std::vector<std::vector<comm::Sent>> sent;  // by sender and receiver of the ep group
};

// Wraps the ranks' communicators, to inject faults.
using Tap = std::function<comm::Communicator&(comm::Communicator& group)>;

LayerOutcome run_layer(const LayerCase& layer, const Tap& tap = {});
// The tokens on a single rank, one row per chosen expert.
LayerOutcome run_on_one_rank(const LayerCase& layer);

// Largest difference divided by the largest magnitude of `want`.
double relative_error(const std::vector<float>& got, const std::vector<float>& want);

}  // namespace weft::model
