// Meetings between MPI processes.
#pragma once

#include <memory>
#include <vector>

#include "weft/comm/mpi/world.h"
#include "weft/comm/transport.h"

namespace weft::comm::mpi {

// `channels` numbers, for each member, this group among those that the two ranks share; both count
// alike, so that tags need no agreement. SystemError when MPI has no tags left.
std::unique_ptr<Transport> make_transport(World& world,
                                          Membership group,
                                          std::vector<int> channels);

}  // namespace weft::comm::mpi
