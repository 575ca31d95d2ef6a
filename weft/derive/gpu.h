// What the rules need to know of a GPU.
#pragma once

#include <optional>
#include <string>

#include "weft/config/config.h"

namespace weft::derive {

struct GpuFacts {
  std::string name;          // as the driver says it; empty: not known
  std::optional<int> major;  // of the compute capability; none: not known
  int gpus_per_node = 8;
  int nvlink_domain = 8;  // GPUs that NVLink joins: of its machine, or of more
  // What CUDA says that the card has in all, which is more than the name of most of them; 1e9
  // bytes. Of cards that nobody has yet, as advertised. None: not known.
  std::optional<double> memory_gb;
  // As advertised; none: not known.
  std::optional<double> tflops;       // of dense bf16 products
  std::optional<double> memory_gbps;  // 1e9 bytes a second, to and from its own memory
  std::optional<double> nvlink_gbps;  // the same, to the GPUs of its domain, each way
  std::optional<double> host_gbps;    // the same, to the host's memory, each way
  // Of the machine that it shares with others; 1e9 bytes. Where hardware.* does not say it, what
  // NVIDIA's own machines have (DGX; of Grace both processors of a tray).
  std::optional<double> host_memory_gb;
  std::optional<double> host_memory_gbps;  // of its share of that memory, as advertised
};

// What of a machine's memory ranks may take where nobody can look what is free. Assumed: the rest
// is the system's, the loader's and the program's.
inline constexpr double kHostMemoryFree = 0.8;

// From hardware.device_name and hardware.compute_capability where given, else what hardware.gpu is
// known to have. Vera Rubin's capability is not published: `major` is none.
GpuFacts gpu_facts(const config::HardwareConfig& hardware);

// Memory of a GPU that a run cannot have, whatever it counts: the CUDA context, workspaces of
// libraries, buffers of NCCL, graphs, and gaps that an allocator cannot fill. Assumed; the files of
// `weft plan` (hardware/*.yaml) have the same numbers, and a test says so. 1e9 bytes.
inline constexpr double kReservedGb = 5, kReservedGbOfBlackwell = 8;
// By the major compute capability. Where that is not known, as of the latest.
double reserved_gb(std::optional<int> major);
// What is left for what a run counts; none where its memory is not known.
std::optional<std::size_t> usable_bytes(const GpuFacts& gpu);

// What of the advertised rates a layer, a copy and the host's AdamW reach in practice, as measured
// on an H200: layers 53 % of its products, copies 48 of 64 GB/s each way while both ways run.
// Of host memory it is assumed: what streams reach of DDR5 and LPDDR5X.
inline constexpr double kReachedOfProducts = 0.5, kReachedOfHostLink = 0.75,
                        kReachedOfHostMemory = 0.8;

inline constexpr int kBlackwell = 10;  // the major compute capability of the first ones
// Blackwell or later.
bool is_blackwell(const GpuFacts& gpu);

// Whether the kernels of a flex backend run on the GPU. Nothing where its capability is not known,
// and on CPU ranks: then nothing can be probed, and the backend is accepted.
std::optional<bool> supports(config::FlexBackend backend, const config::HardwareConfig& hardware);
// "Ampere, Hopper, Blackwell (B200/B300)": where a backend runs, for messages.
std::string supported_gpus(config::FlexBackend backend);

}  // namespace weft::derive
