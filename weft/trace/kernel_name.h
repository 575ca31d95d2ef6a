// Kind of a GPU kernel, guessed from its name: other programs' traces tell no more.
#pragma once

#include <string>
#include <string_view>

#include "weft/trace/span.h"

namespace weft::trace {

struct KernelSort {
  SpanKind kind = SpanKind::Memory;  // Gemm, Attention, Memory, Copy or Communication
  // For Communication: "ep", "dp", "tp", "pp" or "cp" if the names tell it, else the operation:
  // "all_gather", "send_recv", ...
  std::string communication = {};
};

// Classifies a kernel. `collective` and `group` are NCCL's names of the operation and its process
// group; empty: not given.
KernelSort sort_of_kernel(std::string_view name,
                          std::string_view collective,
                          std::string_view group);
// Classifies a copy by the GPU's copy engines: "Memcpy HtoD (Pinned -> Device)".
KernelSort sort_of_copy(std::string_view name);

}  // namespace weft::trace
