// Keys without effect: each one that the user sets is reported.
#include "weft/config/field.h"
#include "weft/derive/pipeline.h"
#include "weft/rules/judge.h"
#include "weft/rules/topics.h"

namespace weft::rules {

using namespace config;
namespace {

using base::text;

void idle(Judge& judge, bool is_set, const char* key, const std::string& why) {
  if (!is_set || judge.is_refused_for(key)) return;
  judge.report(key, text("{} has no effect: {}", key, why), "leave it out");
}

void judge_one_micro_batch(Judge& judge) {
  if (!judge.overlap().overlap_moe_expert_parallel_comm || judge.micro_batches() != 1) return;
  judge.report("comm_overlap.overlap_moe_expert_parallel_comm",
               "a step has one micro-batch, so nothing can overlap: the forward of one micro-batch "
               "runs beside the backward of another",
               "raise train.global_batch_size");
}

void judge_idle(Judge& judge) {
  const Config& config = judge.config();
  const ModelConfig& model = judge.model();
  idle(judge,
       model.microbatch_group_size_per_vp_stage && derive::virtual_stages(model) == 1,
       "model.microbatch_group_size_per_vp_stage",
       "model.virtual_pipeline_model_parallel_size = 1 is a plain pipeline");
  idle(judge,
       model.microbatch_group_size_per_vp_stage &&
           config.runtime.pipeline_schedule == PipelineSchedule::DualPipeV,
       "model.microbatch_group_size_per_vp_stage",
       "runtime.pipeline_schedule = dualpipev takes its two chunks in turn");
  const bool alone = model.pipeline_model_parallel_size == 1;
  const CommOverlapConfig& overlap = judge.overlap();
  idle(judge,
       alone && overlap.overlap_p2p_comm.value_or(false),
       "comm_overlap.overlap_p2p_comm",
       "model.pipeline_model_parallel_size = 1 has no neighbours");
  idle(judge,
       alone && overlap.batch_p2p_comm.value_or(false),
       "comm_overlap.batch_p2p_comm",
       "model.pipeline_model_parallel_size = 1 has no neighbours");
  idle(judge,
       alone && model.overlap_p2p_comm_warmup_flush,
       "model.overlap_p2p_comm_warmup_flush",
       "model.pipeline_model_parallel_size = 1 has no neighbours");
  idle(judge,
       config.ddp.use_distributed_optimizer && derive::virtual_stages(model) == 1 &&
           overlap.overlap_param_gather_with_optimizer_step.value_or(false),
       "comm_overlap.overlap_param_gather_with_optimizer_step",
       "one chunk a rank: its first bucket is needed as soon as the optimizer is done");
  idle(judge,
       derive::virtual_stages(model) == 1 && overlap.align_param_gather.value_or(false),
       "comm_overlap.align_param_gather",
       "only chunks of a virtual pipeline wait for each other's gathers, and there is one a rank");
  idle(judge,
       model.overlap_dispatch_backward_with_experts_wgrad && !model.tokens_travel(),
       "model.overlap_dispatch_backward_with_experts_wgrad",
       "model.expert_model_parallel_size = 1 sends no tokens");
  idle(judge,
       !config.ddp.grad_reduce_in_fp32 && model.params_dtype == base::DType::F32,
       "ddp.grad_reduce_in_fp32",
       "the parameters' dtype is fp32");
  idle(judge,
       config.runtime.logits_chunk > 0 && model.params_dtype == base::DType::F32,
       "runtime.logits_chunk",
       "a gradient in fp32 is as large as the logits, whose place it takes");
  idle(judge,
       config.runtime.logits_chunk > 0 && model.tensor_model_parallel_size > 1,
       "runtime.logits_chunk",
       "model.tensor_model_parallel_size > 1: ranks exchange sums behind the logits of all tokens");
  const bool reads_order = !config.runtime.schedule.empty();
  idle(judge,
       reads_order && overlap.overlap_moe_expert_parallel_comm,
       "comm_overlap.overlap_moe_expert_parallel_comm",
       "the order that runs is that of runtime.schedule");
  idle(judge,
       reads_order && overlap.delay_wgrad_compute,
       "comm_overlap.delay_wgrad_compute",
       "the order that runs is that of runtime.schedule");
  idle(judge,
       model.multi_latent_attention && model.qk_layernorm == QkNorm::Projection,
       "model.qk_layernorm",
       "model.multi_latent_attention norms what it compresses, and nothing else");
  idle(judge,
       model.apply_rope_fusion &&
           (model.multi_latent_attention || model.qk_layernorm != QkNorm::Head),
       "model.apply_rope_fusion",
       "a rotation is one kernel with the norm of each head (model.qk_layernorm=head), and without "
       "one it is a kernel already");
  idle(judge,
       model.multi_latent_attention && model.kv_channels,
       "model.kv_channels",
       "model.multi_latent_attention has widths of its own");
  idle(judge,
       overlap.moe_token_slices > 1 && model.experts() == 0,
       "comm_overlap.moe_token_slices",
       "model.num_moe_experts is null, so no tokens travel to experts");
  idle(judge,
       overlap.moe_token_slices > 1 && model.experts() > 0 && !model.tokens_travel(),
       "comm_overlap.moe_token_slices",
       "model.expert_model_parallel_size = 1 sends no tokens");
  idle(judge,
       model.moe_shared_expert_intermediate_size && model.experts() == 0,
       "model.moe_shared_expert_intermediate_size",
       "model.num_moe_experts is null, and shared experts stand beside routed ones");
  idle(judge,
       model.moe_shared_expert_overlap && model.moe_shared_expert_intermediate_size &&
           !model.tokens_travel(),
       "model.moe_shared_expert_overlap",
       "model.expert_model_parallel_size = 1 sends no tokens");
  idle(judge,
       model.moe_router_num_groups && !model.moe_router_group_topk,
       "model.moe_router_num_groups",
       "without model.moe_router_group_topk a token may choose from all groups");
  idle(judge,
       model.moe_router_force_load_balancing && model.moe_router_force_biased,
       "model.moe_router_force_load_balancing",
       "model.moe_router_force_biased decides how tokens are routed");
  idle(judge,
       model.moe_expert_rank_capacity_factor && !model.tokens_travel() &&
           dispatches_by(model, FlexBackend::HybridEp),  // the other backends are refused
       "model.moe_expert_rank_capacity_factor",
       "model.expert_model_parallel_size = 1: one rank has all rows, whatever they are");
  idle(judge,
       model.moe_permute_fusion && model.experts() == 0,
       "model.moe_permute_fusion",
       "model.num_moe_experts is null, so no rows come back from experts");
  idle(judge,
       model.moe_permute_fusion && model.experts() > 0 &&
           model.moe_token_dispatcher_type == Dispatcher::AllGather,
       "model.moe_permute_fusion",
       "model.moe_token_dispatcher_type = allgather adds a token's rows before they come back");
  idle(judge,
       config.fabric.seed != 0 && config.fabric.jitter_us == 0,
       "fabric.seed",
       "fabric.jitter_us = 0 draws nothing at random");
  idle(judge,
       !config.model.moe_layer_freq.empty() && model.experts() == 0 &&
           config.model.moe_layer_freq != std::vector<std::int64_t>{1},
       "model.moe_layer_freq",
       "model.num_moe_experts is null, so every layer is dense");
}

// Reports a key whose governing key is at its default.
void judge_governed(Judge& judge) {
  for (const Field& field : fields()) {
    if (field.support.kind != Support::Kind::With || is_default(field, judge.config())) continue;
    const Field* governing = find_field(field.support.text);
    if (!is_default(*governing, judge.config()) || judge.is_refused_for(field.key)) continue;
    judge.report(field.key,
                 text("{} = {} has no effect while {} = {}",
                      field.key,
                      value_text(field, judge.config()),
                      governing->key,
                      value_text(*governing, judge.config())),
                 text("set {}, or leave it out", governing->key));
  }
}

void judge_built_in(Judge& judge) {
  for (const Field& field : fields()) {
    const Support::Kind kind = field.support.kind;
    const bool idle =
        kind == Support::Kind::Idle || (kind == Support::Kind::IdleOnCpu && !judge.on_gpu());
    if (!idle || is_default(field, judge.config()) || judge.is_refused_for(field.key)) continue;
    judge.report(field.key,
                 text("{} = {} has no effect in this build: {}",
                      field.key,
                      value_text(field, judge.config()),
                      field.support.text),
                 "");
  }
}

constexpr Rule kIdleRules[] = {
    {.id = "W19",
     .kind = Kind::Warning,
     .when = "expert-parallel overlap with one micro-batch a step",
     .then = "warned",
     .why =
         "The first forward and the last backward of a step have no partner; with one micro-batch "
         "there is nothing else.",
     .example = "model.num_moe_experts=4 model.expert_model_parallel_size=2 "
                "comm_overlap.overlap_moe_expert_parallel_comm=true train.global_batch_size=2",
     .judge = judge_one_micro_batch},
    {.id = "W20",
     .kind = Kind::Warning,
     .when = "a key is set for something the run does not have",
     .then = "warned",
     .why = "A flag that does nothing is worse than an error: it looks like it worked.",
     .example = "fabric.seed=7",
     .judge = judge_idle},
    {.id = "W21",
     .kind = Kind::Warning,
     .when = "a key is set whose governing key is at its default",
     .then = "warned",
     .why = "It only matters together with the other; docs/config.md names it.",
     .example = "model.kv_lora_rank=256",
     .judge = judge_governed},
    {.id = "W22",
     .kind = Kind::Warning,
     .when = "a key is set that chooses between ways of doing a thing of which Weft has one",
     .then = "warned",
     .why =
         "The keys are accepted so that a command line carries over; that they choose nothing is "
         "said, unless another rule refuses the run because of the key.",
     .example = "ddp.check_for_nan_in_grad=true",
     .judge = judge_built_in},
};

}  // namespace

std::span<const Rule> idle_rules() { return kIdleRules; }

}  // namespace weft::rules
