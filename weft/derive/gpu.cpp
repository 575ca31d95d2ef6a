#include "weft/derive/gpu.h"

namespace weft::derive {

using namespace config;
namespace {

struct Known {
  Gpu gpu;
  const char* name;
  std::optional<int> major;
  int gpus_per_node;
  double memory_gb;
  std::optional<double> tflops, memory_gbps, nvlink_gbps, host_gbps, host_memory_gb;
};

constexpr Known kKnown[] = {
    {Gpu::A100, "NVIDIA A100-SXM4-80GB", 8, 8, 80, 312, 2039, 300, 32, 2000},
    {Gpu::H100, "NVIDIA H100 80GB HBM3", 9, 8, 80, 989, 3350, 450, 64, 2000},
    {Gpu::H200, "NVIDIA H200", 9, 8, 141, 989, 4800, 450, 64, 2000},
    {Gpu::B200, "NVIDIA B200", 10, 8, 180, 2250, 8000, 900, 64, 2000},
    {Gpu::B300, "NVIDIA B300", 10, 8, 270, 2250, 8000, 900, 64, 2000},
    {Gpu::Gb200, "NVIDIA GB200", 10, 4, 186, 2500, 8000, 900, 450, 944},
    {Gpu::Gb300, "NVIDIA GB300", 10, 4, 279, 2500, 8000, 900, 450, 944},
    {Gpu::Vr200, "NVIDIA VR200", std::nullopt, 4, 288, {}, {}, {}, {}, {}},
    {Gpu::R100, "NVIDIA R100", std::nullopt, 1, 288, {}, {}, {}, {}, {}}};

}  // namespace

double reserved_gb(std::optional<int> major) {
  return major && *major < kBlackwell ? kReservedGb : kReservedGbOfBlackwell;
}

std::optional<std::size_t> usable_bytes(const GpuFacts& gpu) {
  if (!gpu.memory_gb) return std::nullopt;
  return static_cast<std::size_t>((*gpu.memory_gb - reserved_gb(gpu.major)) * 1e9);
}

GpuFacts gpu_facts(const HardwareConfig& hardware) {
  GpuFacts facts;
  for (const Known& known : kKnown) {
    if (known.gpu != hardware.gpu) continue;
    facts = {.name = known.name,
             .major = known.major,
             .gpus_per_node = known.gpus_per_node,
             .memory_gb = known.memory_gb,
             .tflops = known.tflops,
             .memory_gbps = known.memory_gbps,
             .nvlink_gbps = known.nvlink_gbps,
             .host_gbps = known.host_gbps,
             .host_memory_gb = known.host_memory_gb};
  }
  if (!hardware.device_name.empty()) facts.name = hardware.device_name;
  // Outside the range of the key it is refused elsewhere, and says nothing here.
  const double capability = hardware.compute_capability.value_or(0);
  if (capability >= 1 && capability <= 1000) facts.major = static_cast<int>(capability);
  if (hardware.host_memory_gb) facts.host_memory_gb = hardware.host_memory_gb;
  if (hardware.gpus_per_node) facts.gpus_per_node = static_cast<int>(*hardware.gpus_per_node);
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
      return std::nullopt;  // wherever NCCL is
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
