// The groups of ranks one rank talks in.
#pragma once

#include <memory>
#include <vector>

#include "weft/comm/communicator.h"
#include "weft/derive/parameter_list.h"
#include "weft/grid/grid.h"
#include "weft/rules/judged_config.h"

namespace weft::train {

// The names of the groups that rows travel in to their experts.
inline constexpr const char* kEp = "ep";
inline constexpr const char* kEpAcross = "ep_across";
inline constexpr const char* kEpWithin = "ep_within";

struct Groups {
  grid::Grid grid;
  grid::Coordinate self;
  std::unique_ptr<comm::Communicator> world;
  std::unique_ptr<comm::Communicator> tp;
  std::unique_ptr<comm::Communicator> ep;  // tp_ep: with those that share an expert
  // hybridep, where ep is several ranks: the ranks of the ep group with this one's place in their
  // machine, one a machine, and those of this rank's machine.
  std::unique_ptr<comm::Communicator> ep_across, ep_within;
  // Context-parallel ranks: all, and for a2a+p2p those that exchange heads and those that pass keys
  // on.
  std::unique_ptr<comm::Communicator> cp, cp_heads, cp_ring;
  std::unique_ptr<comm::Communicator> dense_reduction;   // dp x cp
  std::unique_ptr<comm::Communicator> expert_reduction;  // edp
  // Where several ranks of one of these are an instance of the distributed optimizer, and there are
  // several instances: those of this rank's, and those with its place in theirs, one an instance.
  std::unique_ptr<comm::Communicator> dense_within, dense_across;
  std::unique_ptr<comm::Communicator> expert_within, expert_across;
  // Over which balancing losses count: tp x dp x cp, and tp x cp. Null where none does.
  std::unique_ptr<comm::Communicator> replicas, sharers;
  // The tensor-parallel ranks that hold the same key and value heads as this one, where these are
  // fewer than the ranks.
  std::unique_ptr<comm::Communicator> key_copies;
  // The first ranks that together hold a copy of the model, on those: one pipeline with all its
  // shares of dense weights and all its experts.
  std::unique_ptr<comm::Communicator> model_copy;
  // Between pipeline stages, where there are several: activations and gradients apart, because of
  // two ranks each is the other's next and previous, and their traffic must not mix.
  std::unique_ptr<comm::Communicator> pp_forward, pp_backward;
  std::unique_ptr<comm::Communicator> embedding;  // first and last stage, on those

  // The ranks that hold copies of a home's parameters.
  comm::Communicator& reduction(derive::Home home) const {
    return home == derive::Home::Expert ? *expert_reduction : *dense_reduction;
  }
  // Those of them that share one copy of the optimizer's state, where they share it at all: each
  // has the shard of its place.
  comm::Communicator& instance(derive::Home home) const {
    const auto& within = home == derive::Home::Expert ? expert_within : dense_within;
    return within ? *within : reduction(home);
  }
  // Those that have the same shard as this one; null: no other has.
  comm::Communicator* shard_copies(derive::Home home) const {
    return (home == derive::Home::Expert ? expert_across : dense_across).get();
  }
};

// An expert-parallel group by its machines, as one of its members sees it: the ranks with its place
// in their machine, one a machine, and those of its own machine. World ranks ascend, as many in
// each machine.
struct MachineMembers {
  std::vector<int> across, within;
};
MachineMembers machine_members(const std::vector<int>& members, int rank, int ranks_per_node);

// Every rank of the world calls this. Any two ranks make the groups they share in this one order.
Groups join_groups(const rules::JudgedConfig& config, comm::Endpoint& endpoint);

}  // namespace weft::train
