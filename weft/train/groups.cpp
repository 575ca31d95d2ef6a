#include "weft/train/groups.h"

#include <algorithm>

#include "weft/base/check.h"
#include "weft/derive/derived.h"
#include "weft/derive/dispatch.h"
#include "weft/derive/memory/parameter_buffers.h"

namespace weft::train {
namespace {

// This rank's run, in a group cut into runs of `each` members.
std::vector<int> neighbours(const std::vector<int>& members, int rank, std::int64_t each) {
  const auto place = std::ranges::find(members, rank) - members.begin();
  const auto first = members.begin() + place / each * each;
  return {first, first + each};
}

// Number of tensor-parallel ranks with the same key and value heads.
std::int64_t key_copies(const config::ModelConfig& model) {
  if (model.multi_latent_attention) return 1;
  return std::max<std::int64_t>(1, model.tensor_model_parallel_size / model.query_groups());
}

std::vector<int> holders_of_a_copy(const grid::Grid& grid) {
  std::vector<int> holders;
  for (int rank = 0; rank < grid.world(); ++rank) {
    const grid::Coordinate place = grid.coordinate(rank);
    if ((place.dp == 0 && place.cp == 0) || place.edp == 0) holders.push_back(rank);
  }
  return holders;
}

bool has_two_levels(const config::ModelConfig& model) {
  return std::ranges::find(model.cp_comm_type, config::CpComm::AllToAllP2p) !=
         model.cp_comm_type.end();
}

// Members at this rank's position of their run, in a group cut into runs of `each` members.
std::vector<int> counterparts(const std::vector<int>& members, int rank, std::int64_t each) {
  const auto place = std::ranges::find(members, rank) - members.begin();
  std::vector<int> found;
  for (auto i = place % each; i < std::ssize(members); i += each) {
    found.push_back(members[static_cast<std::size_t>(i)]);
  }
  return found;
}

// Joins the instance groups of a home whose buckets are cut into `shards` shards.
void join_instances(comm::Endpoint& endpoint,
                    Groups& groups,
                    derive::Home home,
                    std::int64_t shards) {
  const std::vector<int>& members = groups.reduction(home).members();
  if (shards == 1 || shards == std::ssize(members)) return;
  const bool is_expert = home == derive::Home::Expert;
  const int rank = endpoint.rank();
  (is_expert ? groups.expert_within : groups.dense_within) =
      endpoint.group(is_expert ? "expert_dp_within" : "dp_cp_within",
                     neighbours(members, rank, shards));
  (is_expert ? groups.expert_across : groups.dense_across) =
      endpoint.group(is_expert ? "expert_dp_across" : "dp_cp_across",
                     counterparts(members, rank, shards));
}

}  // namespace

MachineMembers machine_members(const std::vector<int>& members, int rank, int ranks_per_node) {
  MachineMembers machines;
  std::ranges::copy_if(members, std::back_inserter(machines.within), [&](int member) {
    return member / ranks_per_node == rank / ranks_per_node;
  });
  const auto place = std::ranges::find(machines.within, rank) - machines.within.begin();
  const auto each = std::ssize(machines.within);
  CHECK(place < each && std::ssize(members) % each == 0,
        "rank {} of [{}] with {} ranks a machine",
        rank,
        fmt::join(members, " "),
        ranks_per_node);
  for (auto i = place; i < std::ssize(members); i += each) {
    machines.across.push_back(members[static_cast<std::size_t>(i)]);
  }
  return machines;
}

Groups join_groups(const rules::JudgedConfig& config, comm::Endpoint& endpoint) {
  const grid::Grid grid(derive::layout_of(config));
  const int rank = endpoint.rank();
  const auto join = [&](const char* name, grid::GroupKind kind) {
    return endpoint.group(name, grid.group_of(kind, rank));
  };
  Groups groups{.grid = grid,
                .self = grid.coordinate(rank),
                .world = join("world", grid::GroupKind::World),
                .tp = join("tp", grid::GroupKind::Tp),
                .ep = join(kEp, grid::GroupKind::TpEp),
                .ep_across = nullptr,
                .ep_within = nullptr,
                .cp = join("cp", grid::GroupKind::Cp),
                .cp_heads = nullptr,
                .cp_ring = nullptr,
                .dense_reduction = join("dp_cp", grid::GroupKind::DpCp),
                .expert_reduction = join("expert_dp", grid::GroupKind::ExpertDp),
                .dense_within = nullptr,
                .dense_across = nullptr,
                .expert_within = nullptr,
                .expert_across = nullptr,
                .replicas = nullptr,
                .sharers = nullptr,
                .key_copies = nullptr,
                .model_copy = nullptr,
                .pp_forward = nullptr,
                .pp_backward = nullptr,
                .embedding = nullptr};
  const derive::BufferScheme buffers = derive::buffer_scheme(config, groups.self.pp);
  join_instances(endpoint, groups, derive::Home::Dense, buffers.dense.shards);
  join_instances(endpoint, groups, derive::Home::Expert, buffers.expert.shards);
  const std::int64_t copies = key_copies(config->model);
  if (copies > 1) {
    groups.key_copies =
        endpoint.group("key_copies", neighbours(groups.tp->members(), rank, copies));
  }
  std::vector<int> holders = holders_of_a_copy(grid);
  if (std::ranges::find(holders, rank) != holders.end()) {
    groups.model_copy = endpoint.group("model_copy", std::move(holders));
  }
  if (groups.ep->size() > 1 && derive::machines_of_hops(config)) {
    const auto per_machine = static_cast<int>(config->runtime.ranks_per_node.value());
    MachineMembers machines = machine_members(groups.ep->members(), rank, per_machine);
    groups.ep_across = endpoint.group(kEpAcross, std::move(machines.across));
    groups.ep_within = endpoint.group(kEpWithin, std::move(machines.within));
  }
  if (config->model.aux_loss_coeff(config::LoadBalancing::GlobalAuxLoss) != 0) {
    groups.replicas = join("tp_dp_cp", grid::GroupKind::TpDpCp);
  }
  if (grid.tp() * grid.cp() > 1) groups.sharers = join("tp_cp", grid::GroupKind::TpCp);
  if (grid.cp() > 1 && has_two_levels(config->model)) {
    const std::int64_t each = config->model.hierarchical_context_parallel_sizes.front();
    const std::vector<int>& members = groups.cp->members();
    groups.cp_heads = endpoint.group("cp_heads", neighbours(members, rank, each));
    groups.cp_ring = endpoint.group("cp_ring", counterparts(members, rank, each));
  }
  if (grid.pp() == 1) return groups;
  groups.pp_forward = join("pp_forward", grid::GroupKind::Pp);
  groups.pp_backward = join("pp_backward", grid::GroupKind::Pp);
  if (!grid.group_of(grid::GroupKind::Embedding, rank).empty()) {
    groups.embedding = join("embedding", grid::GroupKind::Embedding);
  }
  return groups;
}

}  // namespace weft::train
