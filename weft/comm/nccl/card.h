// Which GPU this rank works on.
#pragma once

#include <string>

namespace weft::comm::nccl {

struct Card {
  int ordinal = 0;   // as the driver counts for this process
  std::string text;  // the same for the same card, whichever process asks
};

// Makes it the calling thread's. SystemError where there is none.
Card use_card(int local_rank);

}  // namespace weft::comm::nccl
