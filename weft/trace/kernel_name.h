// What a GPU kernel is, from its name: in traces of other programs there is nothing else to go by.
#pragma once

#include <string>
#include <string_view>

#include "weft/trace/span.h"

namespace weft::trace {

struct KernelSort {
  SpanKind kind = SpanKind::Memory;  // Gemm, Attention, Memory, Copy or Communication
  // Of Communication: "ep", "dp", "tp", "pp" or "cp" where something says it, else the operation:
  // "all_gather", "send_recv", ...
  std::string communication = {};
};

// Of a kernel. `collective` and `group` are what NCCL tells of the operation and its process group;
// empty where it does not.
KernelSort sort_of_kernel(std::string_view name,
                          std::string_view collective,
                          std::string_view group);
// Of a copy by the GPU's copy engines: "Memcpy HtoD (Pinned -> Device)".
KernelSort sort_of_copy(std::string_view name);

}  // namespace weft::trace
