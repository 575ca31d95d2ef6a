// Checked NCCL calls; an error names the call.
#pragma once

#include <nccl.h>

#include <string_view>

#include "weft/base/error.h"
#include "weft/base/text.h"

namespace weft::comm::nccl {

// "ncclSend: remote process exited or there was a network error (...)"
inline std::string describe(std::string_view call, ncclResult_t result, ncclComm_t comm) {
  return base::text("{}: {} ({})", call, ncclGetErrorString(result), ncclGetLastError(comm));
}

inline void check_nccl(std::string_view call, ncclResult_t result, ncclComm_t comm = nullptr) {
  if (result != ncclSuccess) throw base::SystemError(describe(call, result, comm));
}

}  // namespace weft::comm::nccl
