#include "weft/comm/communicator.h"

#include "weft/base/check.h"

namespace weft::comm {

std::string_view name_of(Operation operation) {
  switch (operation) {
    case Operation::AllToAll:
      return "all_to_all";
    case Operation::AllGather:
      return "all_gather";
    case Operation::ReduceScatter:
      return "reduce_scatter";
    case Operation::AllReduce:
      return "all_reduce";
    case Operation::Broadcast:
      return "broadcast";
    case Operation::Send:
      return "send";
    case Operation::Receive:
      return "receive";
    case Operation::Barrier:
      return "barrier";
  }
  UNREACHABLE("operation {}", static_cast<int>(operation));
}

}  // namespace weft::comm
