#include <chrono>

#include "weft/tensor/stream.h"

namespace weft::tensor {

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace weft::tensor
