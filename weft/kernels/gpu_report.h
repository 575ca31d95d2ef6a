// Report of the CUDA device on this machine: plain values, also available where no GPU can run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weft::kernels {

// Path between the memories of two GPUs. Host: through host memory.
enum class GpuLink { NvLink, Pci, Host };

struct GpuPeer {
  int ordinal = 0;
  GpuLink link = GpuLink::Host;
};

struct Gpu {
  int ordinal = 0;
  std::string name;
  int major = 0, minor = 0;  // compute capability
  int multiprocessors = 0;
  std::int64_t memory_bytes = 0;
  std::int64_t free_bytes = 0;  // 0: the GPU cannot be used
  std::string pci;              // "0000:1b:00.0"
  int numa_node = -1;           // nearest NUMA node of the host; -1: unknown
  std::string why_not;          // why this build cannot use the GPU; empty: it can
  std::vector<GpuPeer> peers = {};
};

struct GpuReport {
  bool library_loaded = false;  // the CUDA device's library
  std::string built_for;        // architectures with compiled kernels: "90a"
  int runtime_version = 0;      // CUDA runtime, as in 13000
  int driver_version = 0;       // newest CUDA that the driver supports; 0: no driver
  std::vector<Gpu> gpus = {};
  // Each is "reason; fix", or empty.
  std::string why_no_cudnn;  // why attention does not use cuDNN
  std::string why_none;      // why no GPU is usable
};

}  // namespace weft::kernels
