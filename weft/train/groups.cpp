#include "weft/train/groups.h"

namespace weft::train {

Groups join_groups(const grid::Layout& layout, comm::Endpoint& endpoint) {
  const grid::Grid grid(layout);
  const int rank = endpoint.rank();
  const auto join = [&](const char* name, grid::GroupKind kind) {
    return endpoint.group(name, grid.group_of(kind, rank));
  };
  Groups groups{.grid = grid,
                .self = grid.coordinate(rank),
                .world = join("world", grid::GroupKind::World),
                .ep = join("ep", grid::GroupKind::Ep),
                .dense_reduction = join("dp_cp", grid::GroupKind::DpCp),
                .expert_reduction = join("expert_dp", grid::GroupKind::ExpertDp),
                .model_copy = join("tp_ep_pp", grid::GroupKind::TpEpPp),
                .pp_forward = nullptr,
                .pp_backward = nullptr,
                .embedding = nullptr};
  if (grid.pp() == 1) return groups;
  groups.pp_forward = join("pp_forward", grid::GroupKind::Pp);
  groups.pp_backward = join("pp_backward", grid::GroupKind::Pp);
  if (!grid.group_of(grid::GroupKind::Embedding, rank).empty()) {
    groups.embedding = join("embedding", grid::GroupKind::Embedding);
  }
  return groups;
}

}  // namespace weft::train
