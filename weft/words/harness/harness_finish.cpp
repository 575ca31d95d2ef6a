// Effects that depend on all words together.
#include <algorithm>

#include "weft/base/text.h"
#include "weft/config/field.h"
#include "weft/derive/gpu.h"
#include "weft/words/harness/harness_effects.h"

namespace weft::words {

using namespace config;
namespace {

using base::text;

constexpr const char* kConnections = "hardware.cuda_device_max_connections";

bool is_given(std::span<const Asked> asked, Effect effect) {
  return std::ranges::any_of(asked, [&](const Asked& one) { return one.effect == effect; });
}

// Last word that makes the harness recompute CUDA_DEVICE_MAX_CONNECTIONS; nullptr: none.
const Asked* last_of_connections(std::span<const Asked> asked) {
  const Asked* last = nullptr;
  for (const Asked& one : asked) {
    const bool counts = one.effect == Effect::TensorParallel ||
                        one.effect == Effect::ExpertOverlap || one.typed.starts_with("-cp ") ||
                        one.typed.starts_with("--context_parallel_size ");
    if (counts) last = &one;
  }
  return last;
}

int connections(const Config& config) {
  const derive::GpuFacts gpu = derive::gpu_facts(config.hardware);
  const bool rubin = config.hardware.gpu == Gpu::Vr200 || config.hardware.gpu == Gpu::R100;
  if (derive::is_blackwell(gpu) || rubin) return 32;
  const bool several =
      config.model.tensor_model_parallel_size > 1 || config.model.context_parallel_size > 1;
  if (gpu.major == 9 && several && !config.comm_overlap.overlap_moe_expert_parallel_comm) return 1;
  const auto backend = config.model.moe_flex_dispatcher_backend;
  return backend == FlexBackend::DeepEp || backend == FlexBackend::HybridEp ? 32 : 8;
}

void finish_connections(std::span<const Asked> asked, Ledger& ledger) {
  const Asked* last = last_of_connections(asked);
  const HardwareConfig& hardware = ledger.config().hardware;
  const bool on_gpu = hardware.gpu || hardware.compute_capability;
  if (last == nullptr || !on_gpu || ledger.has_claim(kConnections)) return;
  ledger.imply(*last,
               "H11",
               kConnections,
               text("{}", connections(ledger.config())),
               "what the harness chooses anew for this GPU, tp, cp, overlap and backend");
}

void finish_overlap(std::span<const Asked> asked, Ledger& ledger) {
  if (!ledger.config().comm_overlap.overlap_moe_expert_parallel_comm) return;
  for (const Asked& one : asked) {
    const bool wished = one.effect == Effect::ExpertOverlap && one.text == "false";
    if (!wished || ledger.is_set_after(one, kOverlap)) continue;
    ledger.warn("H2",
                kOverlap,
                text("{} switches nothing off: {} stays true", shown(one.typed), kOverlap),
                text("write {}=false", kOverlap));
  }
}

void finish_token_drop(std::span<const Asked> asked, Ledger& ledger) {
  if (!is_given(asked, Effect::TokenDrop)) return;
  const ModelConfig& model = ledger.config().model;
  const Dispatcher dispatcher = model.moe_token_dispatcher_type;
  if (dispatcher != Dispatcher::AllToAll && dispatcher != Dispatcher::AllToAllSeq) {
    ledger.complain(
        text("--use_tokendrop: model.moe_token_dispatcher_type = {}: use alltoall, or "
             "leave the flag out",
             word(dispatcher)));
  }
  for (const LoadBalancing balancing : model.moe_router_load_balancing_type) {
    if (balancing == LoadBalancing::None || balancing == LoadBalancing::AuxLoss ||
        balancing == LoadBalancing::SeqAuxLoss) {
      continue;
    }
    ledger.complain(
        text("--use_tokendrop: model.moe_router_load_balancing_type has {}: use "
             "aux_loss, seq_aux_loss or none, or leave the flag out",
             word(balancing)));
  }
}

}  // namespace

void finish_effects(std::span<const Asked> asked, Ledger& ledger) {
  finish_connections(asked, ledger);
  finish_overlap(asked, ledger);
  finish_token_drop(asked, ledger);
  finish_megatron(asked, ledger);
}

}  // namespace weft::words
