// One MoE layer without its router, on several ranks: given choices and probabilities, through
// every stage of a dispatcher and the experts, forward and backward.
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
  int per_machine = 0;                    // hybridep: ranks of a machine; 0: not hybridep
  int shards = 1;                         // ranks that share an expert
  std::vector<std::int64_t> tokens = {};  // of each rank
  std::int64_t experts = 8, k = 2, hidden = 20, width = 12;
  std::vector<std::int32_t> choices = {};  // of all tokens, (T, k); -1: dropped
  std::optional<double> capacity = {};     // drop-and-pad
  std::optional<double> budget = {};       // rows of a rank, over the mean

  int ranks() const { return static_cast<int>(tokens.size()); }
  std::int64_t all_tokens() const;
};

config::ModelConfig model_of(const LayerCase& layer);

// What comes out, of all tokens and all experts in order.
struct LayerOutcome {
  std::vector<float> y, dx, dp, dfc1, dfc2;
  double overflow = 0;
  std::vector<std::vector<comm::Sent>> sent;  // of each rank, to each rank of the ep group
};

// Stands between the ranks and their communicators; for faults.
using Tap = std::function<comm::Communicator&(comm::Communicator& group)>;

LayerOutcome run_layer(const LayerCase& layer, const Tap& tap = {});
// The same tokens on one rank, one row a chosen expert.
LayerOutcome run_on_one_rank(const LayerCase& layer);

// Largest difference over largest magnitude of `want`.
double relative_error(const std::vector<float>& got, const std::vector<float>& want);

}  // namespace weft::model
