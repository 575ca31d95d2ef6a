#include "weft/config/gpu.h"

namespace weft::config {
namespace {

struct Known {
  Gpu gpu;
  const char* name;
  std::optional<int> major;
  int gpus_per_node;
};

constexpr Known kKnown[] = {{Gpu::A100, "NVIDIA A100-SXM4-80GB", 8, 8},
                            {Gpu::H100, "NVIDIA H100 80GB HBM3", 9, 8},
                            {Gpu::B200, "NVIDIA B200", 10, 8},
                            {Gpu::B300, "NVIDIA B300", 10, 8},
                            {Gpu::Gb200, "NVIDIA GB200", 10, 4},
                            {Gpu::Gb300, "NVIDIA GB300", 10, 4},
                            {Gpu::Vr200, "NVIDIA VR200", std::nullopt, 4},
                            {Gpu::R100, "NVIDIA R100", std::nullopt, 1}};

}  // namespace

GpuFacts gpu_facts(const HardwareConfig& hardware) {
  GpuFacts facts;
  for (const Known& known : kKnown) {
    if (known.gpu != hardware.gpu) continue;
    facts = {.name = known.name, .major = known.major, .gpus_per_node = known.gpus_per_node};
  }
  if (!hardware.device_name.empty()) facts.name = hardware.device_name;
  if (hardware.compute_capability) facts.major = static_cast<int>(*hardware.compute_capability);
  if (hardware.gpus_per_node) facts.gpus_per_node = static_cast<int>(*hardware.gpus_per_node);
  return facts;
}

bool is_blackwell(const GpuFacts& gpu) { return gpu.major.value_or(0) >= 10; }

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

}  // namespace weft::config
