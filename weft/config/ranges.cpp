#include "weft/config/ranges.h"

#include <array>
#include <cmath>
#include <optional>

#include "weft/base/check.h"
#include "weft/config/field.h"
#include "weft/grid/layout.h"

namespace weft::config {
namespace {

constexpr double kRanks = grid::kMaxWorld;
constexpr double kWidest = 1 << 24;
constexpr double kMostSteps = 1e9;
constexpr double kMostSamples = 1e15;
constexpr double kMostPositions = 2147483648.0;  // limit of Hugging Face configs
constexpr double kMostGigabytes = 1e6;           // per second
constexpr double kMostMicroseconds = 1e7;        // delay
// Largest integer below 2^63 that a double represents.
constexpr double kLargestSeed = 9223372036854774784.0;

constexpr std::array kRanges{
    Range{"model.num_layers", 1, 10000},
    Range{"model.hidden_size", 1, 1 << 20},
    Range{"model.ffn_hidden_size", 1, kWidest},
    Range{"model.num_attention_heads", 1, 1 << 16},
    Range{"model.num_query_groups", 1, 1 << 16},
    Range{"model.kv_channels", 2, 1 << 16},
    Range{"model.layernorm_epsilon", 0, 1, Ends::High},
    Range{"model.rotary_base", 1, 1e12, Ends::High},
    Range{"model.seq_length", 1, kWidest},
    Range{"model.vocab_size", 2, kWidest},
    Range{"model.make_vocab_size_divisible_by", 1, kWidest},
    Range{"model.pad_token_id", 0, kWidest},
    Range{"model.init_method_std", 0, 100},
    Range{"model.window_size", 1, kWidest},
    Range{"model.window_attn_skip_freq", 1, 10000},
    Range{"model.activation_func_clamp_value", 0, 1e9, Ends::High},
    Range{"model.glu_linear_offset", -1000, 1000},
    Range{"model.attention_dropout", 0, 1, Ends::Low},
    Range{"model.hidden_dropout", 0, 1, Ends::Low},
    Range{"model.rotary_percent", 0, 1, Ends::High},
    Range{"model.rotary_scaling_factor", 0, 1e6, Ends::High},
    Range{"model.max_position_embeddings", 1, kMostPositions},
    Range{"model.original_max_position_embeddings", 1, kWidest},
    Range{"model.mscale", 0, 1000},
    Range{"model.mscale_all_dim", 0, 1000},
    Range{"model.beta_fast", 0, 1e6, Ends::High},
    Range{"model.beta_slow", 0, 1e6, Ends::High},
    Range{"model.q_lora_rank", 1, kWidest},
    Range{"model.kv_lora_rank", 1, kWidest},
    Range{"model.qk_head_dim", 1, 1 << 16},
    Range{"model.qk_pos_emb_head_dim", 1, 1 << 16},
    Range{"model.v_head_dim", 1, 1 << 16},
    Range{"model.latent_layernorm_epsilon", 0, 1, Ends::High},
    Range{"model.linear_attention_freq", 1, 10000},
    Range{"model.linear_conv_kernel_dim", 1, 1 << 16},
    Range{"model.linear_key_head_dim", 1, 1 << 16},
    Range{"model.linear_value_head_dim", 1, 1 << 16},
    Range{"model.linear_num_key_heads", 1, 1 << 16},
    Range{"model.linear_num_value_heads", 1, 1 << 16},
    Range{"model.mtp_num_layers", 0, 1000},
    Range{"model.mtp_loss_scaling_factor", 0, 1000},
    Range{"model.num_moe_experts", -(1 << 16), 1 << 16},
    Range{"model.moe_ffn_hidden_size", 1, kWidest},
    Range{"model.moe_layer_freq", 0, 10000},
    Range{"model.moe_router_topk", 1, 1 << 16},
    Range{"model.moe_router_topk_scaling_factor", 0, 1e6, Ends::High},
    Range{"model.moe_router_num_groups", 1, 1 << 16},
    Range{"model.moe_router_group_topk", 1, 1 << 16},
    Range{"model.moe_router_group_score_topk", 1, 1 << 16},
    Range{"model.moe_router_topk_limited_devices", 1, 1 << 16},
    Range{"model.moe_router_bias_update_rate", 0, 1000},
    Range{"model.moe_input_jitter_eps", 0, 1},
    Range{"model.moe_router_force_biased", 0, 1e6},
    Range{"model.moe_expert_capacity_factor", -1e6, 1e6},
    Range{"model.moe_expert_rank_capacity_factor", 0, 1e6, Ends::High},
    Range{"model.moe_shared_expert_intermediate_size", -kWidest, kWidest},
    Range{"model.moe_latent_size", 1, kWidest},
    Range{"model.moe_flex_dispatcher_num_sms", 1, 1024},
    Range{"model.moe_deepep_num_sms", 1, 1024},
    Range{"model.moe_hybridep_num_sms", 1, 1024},
    Range{"model.moe_aux_loss_coeff", 0, 1000},
    Range{"model.moe_z_loss_coeff", 0, 1000},
    Range{"model.tensor_model_parallel_size", 1, kRanks},
    Range{"model.pipeline_model_parallel_size", 1, kRanks},
    Range{"model.virtual_pipeline_model_parallel_size", 1, 10000},
    Range{"model.microbatch_group_size_per_vp_stage", 1, kWidest},
    Range{"model.tensor_parallel_num_weight_shards", 1, kRanks},
    Range{"model.expert_tensor_parallel_num_weight_shards", 1, kRanks},
    Range{"model.num_layers_in_first_pipeline_stage", 0, 10000},
    Range{"model.num_layers_in_last_pipeline_stage", 0, 10000},
    Range{"model.hierarchical_context_parallel_sizes", 1, kRanks},
    Range{"model.recompute_num_layers", 0, 10000},
    Range{"model.cpu_offloading_num_layers", -1, 10000},
    Range{"model.activation_offload_fraction", -1, 2},
    Range{"model.max_inflight_offloads", -1, 1 << 20},
    Range{"runtime.offload_layers_share", 0, 1},
    Range{"runtime.logits_chunk", 0, 1e9},
    Range{"model.cuda_graph_warmup_steps", 0, 10000},
    Range{"model.num_layers_at_start_in_bf16", -1, 10000},
    Range{"model.num_layers_at_end_in_bf16", -1, 10000},
    Range{"comm_overlap.bucket_size", 1, 1e15},
    Range{"comm_overlap.wgrad_deferral_limit", -1, kWidest},
    Range{"comm_overlap.moe_token_slices", 1, 64},
    Range{"comm_overlap.data_parallel_size", 1, kRanks},
    Range{"ddp.num_distributed_optimizer_instances", 1, kRanks},
    Range{"ddp.bucket_size", 1, 1e15},
    Range{"ddp.num_buckets", 1, kWidest},
    Range{"model.context_parallel_size", 1, kRanks},
    Range{"model.expert_model_parallel_size", 1, kRanks},
    Range{"model.expert_tensor_parallel_size", 1, kRanks},
    Range{"train.micro_batch_size", 1, 1 << 20},
    Range{"train.global_batch_size", 1, kWidest},
    Range{"train.train_iters", 1, kMostSteps},
    Range{"train.train_samples", 1, kMostSamples},
    Range{"train.exit_interval", 1, kMostSteps},
    Range{"train.exit_duration_in_mins", 0, 1e7, Ends::High},
    Range{"train.eval_interval", 0, kMostSteps},
    Range{"train.eval_iters", 0, kMostSteps},
    Range{"train.eval_global_batch_size", 1, kWidest},
    Range{"train.eval_micro_batch_size", 1, 1 << 20},
    Range{"train.manual_gc_interval", 0, kMostSteps},
    Range{"optimizer.lr", 0, 1000},
    Range{"optimizer.min_lr", 0, 1000},
    Range{"optimizer.adam_beta1", 0, 1, Ends::Low},
    Range{"optimizer.adam_beta2", 0, 1, Ends::Low},
    Range{"optimizer.adam_eps", 0, 1, Ends::High},
    Range{"optimizer.weight_decay", 0, 1000},
    Range{"optimizer.clip_grad", 0, 1e9},
    Range{"optimizer.optimizer_offload_fraction", 0, 1},
    Range{"scheduler.lr_warmup_iters", 0, kMostSteps},
    Range{"scheduler.lr_warmup_samples", 0, kMostSamples},
    Range{"scheduler.lr_warmup_fraction", 0, 1, Ends::Low},
    Range{"scheduler.lr_warmup_init", 0, 1000},
    Range{"scheduler.lr_decay_iters", 1, kMostSteps},
    Range{"scheduler.lr_decay_samples", 1, kMostSamples},
    Range{"scheduler.lr_wsd_decay_iters", 1, kMostSteps},
    Range{"scheduler.lr_wsd_decay_samples", 1, kMostSamples},
    Range{"dataset.eval_fraction", 0, 1, Ends::Low},
    Range{"dataset.seq_length", 1, kWidest},
    Range{"dataset.packed_sequence_size", 1, kWidest},
    Range{"rng.seed", 0, kLargestSeed},
    Range{"checkpoint.ckpt_step", 0, kMostSteps},
    Range{"checkpoint.save_interval", 1, kMostSteps},
    Range{"checkpoint.most_recent_k", -1, kMostSteps},
    Range{"logger.log_interval", 1, kMostSteps},
    Range{"logger.tensorboard_log_interval", 1, kMostSteps},
    Range{"logger.tensorboard_queue_size", 1, kMostSteps},
    Range{"runtime.world_size", 1, kRanks},
    Range{"runtime.ranks_per_node", 1, kRanks},
    Range{"runtime.threads_per_rank", 1, 256},
    Range{"runtime.timeout_seconds", 0, 1e7, Ends::High},
    Range{"runtime.rollbacks", 0, 1e6},
    Range{"rerun_state_machine.error_injection_rate", 0, kMostSteps},
    Range{"runtime.optimizer_offload_bucket_size", 64, 1e10},
    Range{"runtime.trace_steps", 1, 10000},
    Range{"fabric.intra_node_gb_per_second", 0, kMostGigabytes},
    Range{"fabric.inter_node_gb_per_second", 0, kMostGigabytes},
    Range{"fabric.intra_node_latency_us", 0, kMostMicroseconds},
    Range{"fabric.inter_node_latency_us", 0, kMostMicroseconds},
    Range{"fabric.jitter_us", 0, kMostMicroseconds},
    Range{"fabric.seed", 0, kLargestSeed},
    Range{"hardware.compute_capability", 1, 1000},
    Range{"hardware.gpus_per_node", 1, kRanks},
    Range{"hardware.host_memory_gb", 1, 1e6},
    Range{"hardware.cuda_device_max_connections", 1, 32},
};

bool inside(const Range& range, double value) {
  if (!std::isfinite(value)) return false;
  const bool low = range.ends == Ends::High ? value > range.low : value >= range.low;
  const bool high = range.ends == Ends::Low ? value < range.high : value <= range.high;
  return low && high;
}

// "from 1 to 10000"
std::string words(const Range& range) {
  const auto number = [](double end) {
    const bool whole = std::floor(end) == end && std::abs(end) < 1e15;
    return whole ? base::text("{:.0f}", end) : base::text("{}", end);
  };
  switch (range.ends) {
    case Ends::Both:
      return base::text("from {} to {}", number(range.low), number(range.high));
    case Ends::High:
      return base::text("above {} and up to {}", number(range.low), number(range.high));
    case Ends::Low:
      return base::text("from {} to below {}", number(range.low), number(range.high));
  }
  UNREACHABLE("ends {}", static_cast<int>(range.ends));
}

// First number of a field's value that is out of range.
std::optional<base::Json> first_outside(const Range& range, const base::Json& value) {
  if (value.is_number()) {
    return inside(range, value.get<double>()) ? std::nullopt : std::optional(value);
  }
  if (value.is_array()) {
    for (const base::Json& item : value) {
      if (auto outside = first_outside(range, item)) return outside;
    }
  }
  return std::nullopt;
}

}  // namespace

std::span<const Range> ranges() { return kRanges; }

std::vector<OutOfRange> numbers_out_of_range(const Config& config) {
  std::vector<OutOfRange> all;
  for (const Range& range : kRanges) {
    const Field* field = find_field(range.key);
    CHECK(field != nullptr, "a range for the unknown key '{}'", range.key);
    const base::Json value = field->get(config);
    const auto outside = first_outside(range, value);
    if (!outside) continue;
    const bool finite = std::isfinite(outside->get<double>());
    all.push_back({.key = field->key,
                   .complaint = base::text("{} = {} is out of range",
                                           field->key,
                                           finite ? outside->dump() : "not finite"),
                   .fix = base::text("use a number {}", words(range))});
  }
  return all;
}

}  // namespace weft::config
