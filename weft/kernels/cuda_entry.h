// Entry point that the program looks up in libweft_cuda.so.
#pragma once

#include "weft/kernels/gpu_report.h"
#include "weft/tensor/device.h"

namespace weft::kernels::cuda {

inline constexpr const char* kLibrary = "libweft_cuda.so";
inline constexpr const char* kEntrySymbol = "weft_cuda_entry";
// Version of this interface: a program and a library of different versions do not work together.
inline constexpr const char* kEntryVersion = "4";

struct Entry {
  const char* version;
  tensor::Device* (*make_device)(int local_rank, tensor::Deterministic deterministic);
  void (*report)(GpuReport& report);  // does not throw
};

}  // namespace weft::kernels::cuda
