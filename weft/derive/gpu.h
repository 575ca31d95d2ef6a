// Facts about GPUs that the rules use.
#pragma once

#include <optional>
#include <string>

#include "weft/config/config.h"

namespace weft::derive {

struct GpuFacts {
  std::string name;          // as the driver reports it; empty: unknown
  std::optional<int> major;  // major compute capability; nullopt: unknown
  int gpus_per_node = 8;
  int nvlink_domain = 8;  // GPUs joined by NVLink: of one machine or more
  // Total memory reported by CUDA, which differs from the nominal size of most GPUs; in 1e9 bytes.
  // Advertised for unreleased GPUs. nullopt: unknown.
  std::optional<double> memory_gb;
  // Advertised values; nullopt: unknown.
  std::optional<double> tflops;       // dense bf16
  std::optional<double> memory_gbps;  // own memory, 1e9 bytes per second
  std::optional<double> nvlink_gbps;  // to the GPUs of its domain, each way
  std::optional<double> host_gbps;    // to host memory, each way
  // Memory of the machine, shared by its GPUs; 1e9 bytes. Without hardware.* keys: that of NVIDIA's
  // own machines (DGX; for Grace, both processors of a tray).
  std::optional<double> host_memory_gb;
  std::optional<double> host_memory_gbps;  // per GPU, advertised
};

// Assumed fraction of a machine's memory available to ranks when free memory is unknown. The
// system, the data loader and the program take the rest.
inline constexpr double kHostMemoryFree = 0.8;

// From hardware.device_name and hardware.compute_capability if given, else from hardware.gpu. Vera
// Rubin's capability is not published: `major` is nullopt.
GpuFacts gpu_facts(const config::HardwareConfig& hardware);

// GPU memory that a run cannot use: the CUDA context, library workspaces, NCCL buffers, graphs, and
// allocator gaps. Assumed; the hardware files of `weft plan` (hardware/*.yaml) have equal numbers,
// which a test checks. 1e9 bytes.
inline constexpr double kReservedGb = 5, kReservedGbOfBlackwell = 8;
// By major compute capability; unknown: the value of the latest GPUs.
double reserved_gb(std::optional<int> major);
// Memory for what a run counts; nullopt: the GPU's memory is unknown.
std::optional<std::size_t> usable_bytes(const GpuFacts& gpu);

// Fractions of the advertised rates that layers, copies and the host's AdamW reach. Measured on an
// H200: layers 53 % of the GEMM rate, copies 48 of 64 GB/s each way with both directions busy.
// Assumed for host memory: the rate that STREAM reaches on DDR5 and LPDDR5X.
inline constexpr double kReachedOfProducts = 0.5, kReachedOfHostLink = 0.75,
                        kReachedOfHostMemory = 0.8;

inline constexpr int kBlackwell = 10;  // lowest major compute capability of Blackwell
// Blackwell or later.
bool is_blackwell(const GpuFacts& gpu);

// True if the kernels of a flex backend run on the GPU. nullopt: unknown capability, or CPU ranks;
// nothing can be probed then, and the backend is accepted.
std::optional<bool> supports(config::FlexBackend backend, const config::HardwareConfig& hardware);
// "Ampere, Hopper, Blackwell (B200/B300)": GPUs that a backend runs on, for messages.
std::string supported_gpus(config::FlexBackend backend);

}  // namespace weft::derive
