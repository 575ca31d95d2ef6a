#include "weft/train/groups.h"

#include <algorithm>

#include "weft/base/check.h"
#include "weft/derive/derived.h"

namespace weft::train {

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
                .ep = join(kEp, grid::GroupKind::Ep),
                .ep_across = nullptr,
                .ep_within = nullptr,
                .dense_reduction = join("dp_cp", grid::GroupKind::DpCp),
                .expert_reduction = join("expert_dp", grid::GroupKind::ExpertDp),
                .model_copy = join("tp_ep_pp", grid::GroupKind::TpEpPp),
                .pp_forward = nullptr,
                .pp_backward = nullptr,
                .embedding = nullptr};
  if (grid.ep() > 1 && config::dispatches_by(config->model, config::FlexBackend::HybridEp)) {
    const auto per_machine = static_cast<int>(config->runtime.ranks_per_node.value());
    MachineMembers machines = machine_members(groups.ep->members(), rank, per_machine);
    groups.ep_across = endpoint.group(kEpAcross, std::move(machines.across));
    groups.ep_within = endpoint.group(kEpWithin, std::move(machines.within));
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
