#include "weft/plan/tuning/tuning_contract.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/text.h"

namespace weft::plan {
namespace {

using namespace std::string_view_literals;

constexpr std::array kTunable{
    "comm_overlap.tp_comm_overlap"sv,
    "comm_overlap.tp_comm_overlap_cfg"sv,
    "comm_overlap.overlap_p2p_comm"sv,
    "comm_overlap.batch_p2p_comm"sv,
    "comm_overlap.overlap_grad_reduce"sv,
    "comm_overlap.overlap_param_gather"sv,
    "comm_overlap.overlap_param_gather_with_optimizer_step"sv,
    "comm_overlap.align_param_gather"sv,
    "comm_overlap.bucket_size"sv,
    "comm_overlap.defer_embedding_wgrad_compute"sv,
    "comm_overlap.wgrad_deferral_limit"sv,
    "comm_overlap.overlap_moe_expert_parallel_comm"sv,
    "comm_overlap.delay_wgrad_compute"sv,
    "comm_overlap.cp_comm_overlap"sv,
    "comm_overlap.moe_token_slices"sv,
    "ddp.use_distributed_optimizer"sv,
    "ddp.num_distributed_optimizer_instances"sv,
    "ddp.overlap_grad_reduce"sv,
    "ddp.overlap_param_gather"sv,
    "ddp.align_param_gather"sv,
    "ddp.bucket_size"sv,
    "ddp.num_buckets"sv,
    "ddp.average_in_collective"sv,
    "ddp.delay_wgrad_compute"sv,
    "ddp.nccl_ub"sv,
    "optimizer.use_distributed_optimizer"sv,
    "optimizer.overlap_param_gather"sv,
    "optimizer.overlap_param_gather_with_optimizer_step"sv,
    "optimizer.optimizer_cpu_offload"sv,
    "optimizer.optimizer_offload_fraction"sv,
    "optimizer.overlap_cpu_optimizer_d2h_h2d"sv,
    "optimizer.pin_cpu_grads"sv,
    "optimizer.pin_cpu_params"sv,
    "model.moe_token_dispatcher_type"sv,
    "model.moe_flex_dispatcher_backend"sv,
    "model.moe_enable_deepep"sv,
    "model.moe_flex_dispatcher_num_sms"sv,
    "model.moe_deepep_num_sms"sv,
    "model.moe_hybridep_num_sms"sv,
    "model.moe_hybridep_pad_uneven_dispatch_inputs"sv,
    "model.moe_shared_expert_overlap"sv,
    "model.overlap_dispatch_backward_with_experts_wgrad"sv,
    "model.ep_overlap_early_attn_memory_release"sv,
    "model.high_priority_a2a_comm_stream"sv,
    "model.overlap_p2p_comm_warmup_flush"sv,
    "model.microbatch_group_size_per_vp_stage"sv,
    "model.cp_comm_type"sv,
    "model.sequence_parallel"sv,
    "model.moe_router_fusion"sv,
    "model.moe_permute_fusion"sv,
    "model.moe_grouped_gemm"sv,
    "model.use_transformer_engine_op_fuser"sv,
    "model.moe_use_grouped_tensor"sv,
    "model.moe_single_grouped_weight"sv,
    "model.moe_paged_stash"sv,
    "model.apply_rope_fusion"sv,
    "model.cross_entropy_loss_fusion"sv,
    "model.cross_entropy_fusion_impl"sv,
    "model.gradient_accumulation_fusion"sv,
    "model.recompute_granularity"sv,
    "model.recompute_method"sv,
    "model.recompute_num_layers"sv,
    "model.recompute_modules"sv,
    "model.distribute_saved_activations"sv,
    "model.cpu_offloading"sv,
    "model.cpu_offloading_num_layers"sv,
    "model.cpu_offloading_activations"sv,
    "model.cpu_offloading_weights"sv,
    "model.fine_grained_activation_offloading"sv,
    "model.offload_modules"sv,
    "model.activation_offload_fraction"sv,
    "model.max_inflight_offloads"sv,
    "model.cuda_graph_impl"sv,
    "model.cuda_graph_modules"sv,
    "model.cuda_graph_scope"sv,
    "model.cuda_graph_warmup_steps"sv,
    "model.enable_cuda_graph"sv,
    "model.external_cuda_graph"sv,
    "train.micro_batch_size"sv,
    "runtime.deterministic"sv,
    "runtime.threads_per_rank"sv,
    "runtime.pin_ranks"sv,
    "runtime.schedule"sv,
    "runtime.pipeline_schedule"sv,
    "runtime.recompute_under_overlap"sv,
    "runtime.optimizer_offload_bucket_size"sv,
    "runtime.logits_chunk"sv,
    "runtime.offload_layers_share"sv,
};

constexpr std::size_t kMostListed = 16;  // keys of a section in a message

bool is_in_section(std::string_view section, std::string_view key) {
  return key.size() > section.size() && key.starts_with(section) && key[section.size()] == '.';
}

// "comm_overlap.tp_comm_overlap, ..., model.moe_grouped_gemm": keys of the key's section, which the
// user may have meant, and the others in one line.
std::string varied_text(std::string_view key) {
  const std::string section(key.substr(0, key.find('.')));
  std::vector<std::string_view> near;
  for (const std::string_view tunable : kTunable) {
    if (is_in_section(section, tunable)) near.push_back(tunable);
  }
  const std::string others =
      "orders and overlaps (comm_overlap.*, ddp.overlap_*, runtime.pipeline_schedule), the "
      "dispatcher (model.moe_token_dispatcher_type, model.moe_flex_dispatcher_backend), fused "
      "kernels, recompute and offload (model.recompute_*, model.cpu_offloading*) and "
      "train.micro_batch_size";
  if (near.empty() || near.size() > kMostListed) return others;
  return base::text("{}; of {}.*: {}", others, section, fmt::join(near, ", "));
}

}  // namespace

std::span<const std::string_view> tunable_keys() { return kTunable; }

void require_tunable_key(std::string_view key) {
  if (std::ranges::find(kTunable, key) != kTunable.end()) return;
  throw base::ConfigError(base::text(
      "--vary {}: the tuner keeps the model, its data, its global batch, its numerics, the sizes "
      "of its layout and the machine, because steps of different work cannot be compared. It may "
      "vary {}. To measure other values beside each other: weft perf --vary={}=x,y",
      key,
      varied_text(key),
      key));
}

}  // namespace weft::plan
