// What the CUDA device finds on this machine: plain values, told also where nothing can run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weft::kernels {

// How a card reaches the memory of another. Host: only by way of the host's memory.
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
  std::int64_t free_bytes = 0;  // 0 where it cannot be used
  std::string pci;              // "0000:1b:00.0"
  int numa_node = -1;           // of the host, nearest to it; -1: not told
  std::string why_not;          // why this build cannot use it; empty where it can
  std::vector<GpuPeer> peers = {};
};

struct GpuReport {
  bool library_loaded = false;  // the library of the CUDA device
  std::string built_for;        // the architectures it has kernels for: "90a"
  int runtime_version = 0;      // of CUDA, as in 13000
  int driver_version = 0;       // of CUDA, that the driver knows; 0: there is no driver
  std::vector<Gpu> gpus = {};
  // "The reason; the way out", or empty.
  std::string why_no_cudnn;  // why attention does without cuDNN
  std::string why_none;      // why there is no GPU
};

}  // namespace weft::kernels
