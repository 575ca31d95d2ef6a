// Known facts about the target GPU.
#include <algorithm>

#include "weft/derive/gpu.h"
#include "weft/rules/chosen.h"
#include "weft/rules/judge.h"
#include "weft/rules/topics.h"

namespace weft::rules {

using namespace config;
namespace {

using base::text;

constexpr std::int64_t kRanksOfRack = 72;

void judge_facts(Judge& judge) {
  const HardwareConfig& hardware = judge.config().hardware;
  if (!hardware.gpu || !judge.sound_section("hardware.")) return;
  const derive::GpuFacts facts = derive::gpu_facts(hardware);
  const std::string why = text("hardware.gpu = {}", word(*hardware.gpu));
  if (hardware.device_name.empty()) judge.set("hardware.device_name", facts.name, why);
  if (!hardware.compute_capability && facts.major) {
    judge.set("hardware.compute_capability", text("{}.0", *facts.major), why);
  }
  if (!hardware.gpus_per_node) {
    judge.set("hardware.gpus_per_node", text("{}", facts.gpus_per_node), why);
  }
}

// True for GPUs with one NVLink domain across the machines of a rack.
bool shares_a_rack(const HardwareConfig& hardware) {
  constexpr const char* kNames[] = {"NVIDIA GB200", "NVIDIA GB300", "NVIDIA VR200", "NVIDIA R100"};
  const std::string name = derive::gpu_facts(hardware).name;
  return std::ranges::any_of(kNames, [&](const char* start) { return name.starts_with(start); });
}

void judge_rack(Judge& judge) {
  const std::int64_t ep = judge.model().expert_model_parallel_size;
  if (ep <= kRanksOfRack || !dispatches_by(judge.model(), FlexBackend::HybridEp)) return;
  if (!judge.on_gpu() || !judge.sound_section("hardware.")) return;
  if (!shares_a_rack(judge.config().hardware)) return;
  judge.report("model.expert_model_parallel_size",
               text("hybridep on {} keeps the ranks of a dispatch in one NVLink domain of {}, and "
                    "model.expert_model_parallel_size = {}",
                    derive::gpu_facts(judge.config().hardware).name,
                    kRanksOfRack,
                    ep),
               text("use at most {}, or another dispatcher", kRanksOfRack));
}

constexpr Rule kHardwareRules[] = {
    {.id = "W25",
     .kind = Kind::Automatic,
     .when = "hardware.gpu is set and what it implies is not",
     .then = "hardware.device_name, compute_capability and gpus_per_node := those of the GPU",
     .why = "Rules judge by the device's name and capability, as a probe would find them; naming "
            "the GPU is enough to try any of them anywhere. Of the capability only the major "
            "number matters, and where it is not published it stays null.",
     .example = "hardware.gpu=h100",
     .judge = judge_facts},
    {.id = "F14",
     .when = "hybridep on gb200, gb300, vr200 or r100 with ep > 72",
     .then = "refused",
     .why =
         "There the whole ep group shares one NVLink domain, which a rack of 72 bounds. On h100, "
         "b200 and b300 the domain is a machine: min(ep, 8) ranks share it (F13).",
     .example = "hardware.gpu=gb200 model.num_moe_experts=128 model.expert_model_parallel_size=128 "
                "train.global_batch_size=128 model.moe_token_dispatcher_type=flex "
                "model.moe_flex_dispatcher_backend=hybridep",
     .also = "F13",
     .judge = judge_rack},
};

}  // namespace

std::span<const Rule> hardware_rules() { return kHardwareRules; }

}  // namespace weft::rules
