// The groups of ranks one rank talks in.
#pragma once

#include <memory>

#include "weft/comm/communicator.h"
#include "weft/grid/grid.h"

namespace weft::train {

struct Groups {
  grid::Grid grid;
  grid::Coordinate self;
  std::unique_ptr<comm::Communicator> world;
  std::unique_ptr<comm::Communicator> ep;
  std::unique_ptr<comm::Communicator> dense_reduction;   // dp x cp
  std::unique_ptr<comm::Communicator> expert_reduction;  // edp
};

// Every rank of the world calls this.
Groups join_groups(const grid::Layout& layout, comm::Endpoint& endpoint);

}  // namespace weft::train
