// Meetings between MPI processes.
#pragma once

#include <memory>
#include <vector>

#include "weft/comm/mpi/world.h"
#include "weft/comm/transport.h"

namespace weft::comm::mpi {

// `channels`: for each member, the index of this group among the groups that both ranks share. Both
// ranks count alike, so tags need no agreement. SystemError if MPI has no tags left.
std::unique_ptr<Transport> make_transport(World& world,
                                          Membership group,
                                          std::vector<int> channels);

}  // namespace weft::comm::mpi
