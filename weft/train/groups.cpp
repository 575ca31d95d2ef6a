#include "weft/train/groups.h"

#include <algorithm>

#include "weft/base/check.h"
#include "weft/config/derived.h"

namespace weft::train {
namespace {

// Members are in the order of their world ranks, and so node by node, as many in each.
void join_nodes(Groups& groups, const config::Config& config, comm::Endpoint& endpoint) {
  const std::vector<int>& members = groups.ep->members();
  const auto per_node = static_cast<int>(config.runtime.ranks_per_node.value());
  const int own_node = endpoint.rank() / per_node;
  std::vector<int> within, across;
  std::ranges::copy_if(members, std::back_inserter(within), [&](int rank) {
    return rank / per_node == own_node;
  });
  const std::size_t place = static_cast<std::size_t>(groups.ep->rank()) % within.size();
  CHECK(members.size() % within.size() == 0,
        "{} of {} ep ranks in a node",
        within.size(),
        members.size());
  for (std::size_t i = place; i < members.size(); i += within.size()) across.push_back(members[i]);
  groups.ep_across = endpoint.group("ep_across", std::move(across));
  groups.ep_within = endpoint.group("ep_within", std::move(within));
}

}  // namespace

Groups join_groups(const config::Config& config, comm::Endpoint& endpoint) {
  const grid::Grid grid(config::layout_of(config));
  const int rank = endpoint.rank();
  const auto join = [&](const char* name, grid::GroupKind kind) {
    return endpoint.group(name, grid.group_of(kind, rank));
  };
  Groups groups{.grid = grid,
                .self = grid.coordinate(rank),
                .world = join("world", grid::GroupKind::World),
                .ep = join("ep", grid::GroupKind::Ep),
                .ep_across = nullptr,
                .ep_within = nullptr,
                .dense_reduction = join("dp_cp", grid::GroupKind::DpCp),
                .expert_reduction = join("expert_dp", grid::GroupKind::ExpertDp),
                .model_copy = join("tp_ep_pp", grid::GroupKind::TpEpPp),
                .pp_forward = nullptr,
                .pp_backward = nullptr,
                .embedding = nullptr};
  if (grid.ep() > 1 && config::dispatches_by(config.model, config::FlexBackend::HybridEp))
    join_nodes(groups, config, endpoint);
  if (grid.pp() == 1) return groups;
  groups.pp_forward = join("pp_forward", grid::GroupKind::Pp);
  groups.pp_backward = join("pp_backward", grid::GroupKind::Pp);
  if (!grid.group_of(grid::GroupKind::Embedding, rank).empty()) {
    groups.embedding = join("embedding", grid::GroupKind::Embedding);
  }
  return groups;
}

}  // namespace weft::train
