#include "weft/train/groups.h"

namespace weft::train {

Groups join_groups(const grid::Layout& layout, comm::Endpoint& endpoint) {
  const grid::Grid grid(layout);
  const int rank = endpoint.rank();
  const auto join = [&](const char* name, grid::GroupKind kind) {
    return endpoint.group(name, grid.group_of(kind, rank));
  };
  return {.grid = grid,
          .self = grid.coordinate(rank),
          .world = join("world", grid::GroupKind::World),
          .ep = join("ep", grid::GroupKind::Ep),
          .dense_reduction = join("dp_cp", grid::GroupKind::DpCp),
          .expert_reduction = join("expert_dp", grid::GroupKind::ExpertDp)};
}

}  // namespace weft::train
