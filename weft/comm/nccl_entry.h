// Entry point of libweft_nccl.so.
#pragma once

#include "weft/comm/launch.h"
#include "weft/comm/rendezvous/place.h"

namespace weft::comm {

inline constexpr const char* kNcclLibrary = "libweft_nccl.so";
inline constexpr const char* kNcclEntrySymbol = "weft_nccl_entry";
// Interface version; the program rejects a library with another one.
inline constexpr const char* kNcclEntryVersion = "2";

struct NcclEntry {
  const char* version;
  // run_nccl for checked options.
  void (*run)(const rendezvous::Place& place,
              const LaunchOptions& options,
              const RankFunction& function);
};

}  // namespace weft::comm
