#include "weft/derive/gpu.h"

#include <algorithm>
#include <cmath>

namespace weft::derive {

using namespace config;
namespace {

struct Known {
  Gpu gpu;
  const char* name;
  std::optional<int> major;
  int gpus_per_node;
  int nvlink_domain;
  double memory_gb;
  std::optional<double> tflops, memory_gbps, nvlink_gbps, host_gbps, host_memory_gb,
      host_memory_gbps;
};

// Memory: total reported by CUDA (cudaMemGetInfo), from public PyTorch reports ("a total capacity
// of ..."): A100 and H100 79.1, H200 139.7 (139 on the one used for measurements), B200 178.35,
// B300 267.69, GB200 184.31, GB300 276.50 GiB. Drivers differ by a tenth of a GiB; the smallest
// value found is used. VR200 and R100: as advertised. In a rack of GB200, GB300 or VR200, NVLink
// joins 72 GPUs.
constexpr Known kKnown[] = {
    {Gpu::A100, "NVIDIA A100-SXM4-80GB", 8, 8, 8, 84.9, 312, 2039, 300, 32, 2000, 51.2},
    {Gpu::H100, "NVIDIA H100 80GB HBM3", 9, 8, 8, 84.9, 989, 3350, 450, 64, 2000, 76.8},
    {Gpu::H200, "NVIDIA H200", 9, 8, 8, 150, 989, 4800, 450, 64, 2000, 76.8},
    {Gpu::B200, "NVIDIA B200", 10, 8, 8, 191.5, 2250, 8000, 900, 64, 2000, 89.6},
    {Gpu::B300, "NVIDIA B300", 10, 8, 8, 287.4, 2250, 8000, 900, 64, 2000, 102.4},
    {Gpu::Gb200, "NVIDIA GB200", 10, 4, 72, 197.9, 2500, 8000, 900, 450, 944, 256},
    {Gpu::Gb300, "NVIDIA GB300", 10, 4, 72, 296.8, 2500, 8000, 900, 450, 944, 194},
    {Gpu::Vr200, "NVIDIA VR200", std::nullopt, 4, 72, 288, {}, {}, {}, {}, {}, {}},
    {Gpu::R100, "NVIDIA R100", std::nullopt, 1, 1, 288, {}, {}, {}, {}, {}, {}}};

}  // namespace

double reserved_gb(std::optional<int> major) {
  return major && *major < kBlackwell ? kReservedGb : kReservedGbOfBlackwell;
}

std::optional<std::size_t> usable_bytes(const GpuFacts& gpu) {
  if (!gpu.memory_gb) return std::nullopt;
  return static_cast<std::size_t>(std::llround((*gpu.memory_gb - reserved_gb(gpu.major)) * 1e9));
}

GpuFacts gpu_facts(const HardwareConfig& hardware) {
  GpuFacts facts;
  for (const Known& known : kKnown) {
    if (known.gpu != hardware.gpu) continue;
    facts = {.name = known.name,
             .major = known.major,
             .gpus_per_node = known.gpus_per_node,
             .nvlink_domain = known.nvlink_domain,
             .memory_gb = known.memory_gb,
             .tflops = known.tflops,
             .memory_gbps = known.memory_gbps,
             .nvlink_gbps = known.nvlink_gbps,
             .host_gbps = known.host_gbps,
             .host_memory_gb = known.host_memory_gb,
             .host_memory_gbps = known.host_memory_gbps};
  }
  if (!hardware.device_name.empty()) facts.name = hardware.device_name;
  for (const Known& known : kKnown) {
    if (facts.name.starts_with(known.name)) facts.nvlink_domain = known.nvlink_domain;
  }
  // Values out of range are refused elsewhere and ignored here.
  const double capability = hardware.compute_capability.value_or(0);
  if (capability >= 1 && capability <= 1000) facts.major = static_cast<int>(capability);
  if (hardware.host_memory_gb) facts.host_memory_gb = hardware.host_memory_gb;
  const bool joins_machines = facts.nvlink_domain > facts.gpus_per_node;
  if (hardware.gpus_per_node) facts.gpus_per_node = static_cast<int>(*hardware.gpus_per_node);
  // NVLink joins all GPUs of a machine, whatever their configured number.
  facts.nvlink_domain = std::max(joins_machines ? facts.nvlink_domain : 0, facts.gpus_per_node);
  return facts;
}

bool is_blackwell(const GpuFacts& gpu) { return gpu.major.value_or(0) >= kBlackwell; }

std::optional<bool> supports(FlexBackend backend, const HardwareConfig& hardware) {
  const GpuFacts gpu = gpu_facts(hardware);
  if (!gpu.major) return std::nullopt;
  const bool older = *gpu.major == 8 || *gpu.major == 9;
  switch (backend) {
    case FlexBackend::DeepEp:
      return older || gpu.name.starts_with("NVIDIA B200") || gpu.name.starts_with("NVIDIA B300");
    case FlexBackend::HybridEp:
      return older || *gpu.major == 10;
    case FlexBackend::NcclEp:
      return std::nullopt;  // depends on NCCL
  }
  return std::nullopt;
}

std::string supported_gpus(FlexBackend backend) {
  switch (backend) {
    case FlexBackend::DeepEp:
      return "Ampere, Hopper and Blackwell (B200/B300)";
    case FlexBackend::HybridEp:
      return "Ampere, Hopper and Blackwell (B200/B300, GB200/GB300)";
    case FlexBackend::NcclEp:
      return "every GPU that NCCL serves";
  }
  return "";
}

}  // namespace weft::derive
