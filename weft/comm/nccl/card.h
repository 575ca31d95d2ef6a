// The GPU of this rank.
#pragma once

#include <string>

namespace weft::comm::nccl {

struct Card {
  int ordinal = 0;   // CUDA ordinal in this process
  std::string text;  // identity of the GPU, equal in all processes
};

// Selects the GPU for the calling thread. SystemError if this machine has none.
Card use_card(int local_rank);

}  // namespace weft::comm::nccl
