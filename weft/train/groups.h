// Communicators of one rank.
#pragma once

#include <memory>
#include <vector>

#include "weft/comm/communicator.h"
#include "weft/derive/parameter_list.h"
#include "weft/grid/grid.h"
#include "weft/rules/judged_config.h"

namespace weft::train {

// Names of the groups that carry rows to experts.
inline constexpr const char* kEp = "ep";
inline constexpr const char* kEpAcross = "ep_across";
inline constexpr const char* kEpWithin = "ep_within";

struct Groups {
  grid::Grid grid;
  grid::Coordinate self;
  std::unique_ptr<comm::Communicator> world;
  std::unique_ptr<comm::Communicator> tp;
  std::unique_ptr<comm::Communicator> ep;  // tp_ep: the ranks that share an expert are in it too
  // Hybrid expert parallelism (hybridep) over several ranks. across: the ranks of the ep group at
  // this rank's position in their machine, one per machine. within: those of this rank's machine.
  std::unique_ptr<comm::Communicator> ep_across, ep_within;
  // Context-parallel ranks: all; for a2a+p2p also the ranks that exchange heads and the ring that
  // passes keys on.
  std::unique_ptr<comm::Communicator> cp, cp_heads, cp_ring;
  std::unique_ptr<comm::Communicator> dense_reduction;   // dp x cp
  std::unique_ptr<comm::Communicator> expert_reduction;  // edp
  // Distributed optimizer with several instances of several ranks. within: the ranks of this
  // instance. across: the ranks at the same position of each instance.
  std::unique_ptr<comm::Communicator> dense_within, dense_across;
  std::unique_ptr<comm::Communicator> expert_within, expert_across;
  // Ranks over which balancing losses count: tp x dp x cp, and tp x cp. nullptr: no such loss.
  std::unique_ptr<comm::Communicator> replicas, sharers;
  // Tensor-parallel ranks with the same key and value heads, if there are fewer such heads than
  // ranks.
  std::unique_ptr<comm::Communicator> key_copies;
  // The first ranks that together hold one copy of the model, on those ranks: one pipeline with all
  // shares of its dense weights and all experts.
  std::unique_ptr<comm::Communicator> model_copy;
  // Neighbouring pipeline stages, if there are several. Activations and gradients use separate
  // groups: with two ranks each is the other's next and previous, and the traffic must not mix.
  std::unique_ptr<comm::Communicator> pp_forward, pp_backward;
  std::unique_ptr<comm::Communicator> embedding;  // first and last stage, on those ranks

  // Ranks with copies of a home's parameters.
  comm::Communicator& reduction(derive::Home home) const {
    return home == derive::Home::Expert ? *expert_reduction : *dense_reduction;
  }
  // Ranks that share one copy of the optimizer state; each has the shard of its position. Without
  // sharding: the whole reduction group.
  comm::Communicator& instance(derive::Home home) const {
    const auto& within = home == derive::Home::Expert ? expert_within : dense_within;
    return within ? *within : reduction(home);
  }
  // Ranks with the same shard as this one; nullptr: none.
  comm::Communicator* shard_copies(derive::Home home) const {
    return (home == derive::Home::Expert ? expert_across : dense_across).get();
  }
};

// A member's view of an expert-parallel group by machine. across: the ranks at its position in
// their machine, one per machine. within: the ranks of its own machine. World ranks ascend; every
// machine has the same number.
struct MachineMembers {
  std::vector<int> across, within;
};
MachineMembers machine_members(const std::vector<int>& members, int rank, int ranks_per_node);

// Every rank of the world calls it. Two ranks make their common groups in the same order.
Groups join_groups(const rules::JudgedConfig& config, comm::Endpoint& endpoint);

}  // namespace weft::train
