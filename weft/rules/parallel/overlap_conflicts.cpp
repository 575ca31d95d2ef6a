// Conflicts with expert-parallel overlap.
#include <algorithm>

#include "weft/derive/gpu.h"
#include "weft/derive/pipeline.h"
#include "weft/rules/captured.h"
#include "weft/rules/chosen.h"
#include "weft/rules/judge.h"
#include "weft/rules/topics.h"

namespace weft::rules {

using namespace config;
namespace {

using base::text;

bool recomputes_layers(const ModelConfig& model) {
  return model.recompute_granularity == RecomputeGranularity::Full;
}

bool runs_experts_again(const Judge& judge) {
  return judge.config().runtime.recompute_under_overlap;
}

void judge_full_recompute(Judge& judge) {
  if (!overlaps(judge) || !recomputes_layers(judge.model()) || runs_experts_again(judge)) return;
  judge.report(
      "model.recompute_granularity",
      text("{} and model.recompute_granularity = full: a layer that runs again as a whole "
           "sends its tokens again, with nothing beside it",
           kOverlap),
      "use selective recomputation, and unset model.recompute_method and "
      "model.recompute_num_layers; or let it run with runtime.recompute_under_overlap=true");
}

// With full recomputation, C20 reports it.
void judge_recompute_method(Judge& judge) {
  const std::optional<RecomputeMethod> method = judge.model().recompute_method;
  if (!overlaps(judge) || !method || recomputes_layers(judge.model())) return;
  judge.report("model.recompute_method",
               text("{} and model.recompute_method = {}, which chooses whole layers to run again",
                    kOverlap,
                    word(*method)),
               "set model.recompute_method=null");
}

void judge_recompute_layers(Judge& judge) {
  const std::optional<std::int64_t> layers = judge.model().recompute_num_layers;
  if (!overlaps(judge) || !layers || recomputes_layers(judge.model())) return;
  judge.report(
      "model.recompute_num_layers",
      text("{} and model.recompute_num_layers = {}, which counts whole layers to run again",
           kOverlap,
           *layers),
      "set model.recompute_num_layers=null");
}

void judge_recompute_moe(Judge& judge) {
  const auto& modules = judge.model().recompute_modules;
  if (!overlaps(judge) || !modules || runs_experts_again(judge)) return;
  if (std::ranges::find(*modules, RecomputeModule::Moe) == modules->end()) return;
  judge.report("model.recompute_modules",
               text("{} and moe in model.recompute_modules: experts that run again as a whole send "
                    "their tokens again",
                    kOverlap),
               "recompute moe_act or layernorm instead, or let it run with "
               "runtime.recompute_under_overlap=true");
}

void judge_shared_overlap(Judge& judge) {
  if (!overlaps(judge) || !judge.model().moe_shared_expert_overlap) return;
  judge.report(
      "model.moe_shared_expert_overlap",
      text("{} and model.moe_shared_expert_overlap exclude each other: both put work under "
           "the same messages",
           kOverlap),
      "set model.moe_shared_expert_overlap=false");
}

void judge_offload(Judge& judge) {
  const ModelConfig& model = judge.model();
  const bool fc1 = std::ranges::find(model.offload_modules, OffloadModule::ExpertFc1) !=
                   model.offload_modules.end();
  if (!overlaps(judge) || !model.fine_grained_activation_offloading || !fc1) return;
  if (model.moe_token_dispatcher_type != Dispatcher::Flex) return;
  if (model.moe_flex_dispatcher_backend != FlexBackend::NcclEp) return;
  judge.report(
      "model.offload_modules",
      text("{} with model.moe_flex_dispatcher_backend = ncclep and expert_fc1 in "
           "model.offload_modules: the input of the experts is the backend's buffer, which "
           "the other micro-batch uses meanwhile",
           kOverlap),
      "take expert_fc1 out, or use another backend");
}

void judge_captured_overlap(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (!overlaps(judge) || model.cuda_graph_impl != CudaGraphImpl::TransformerEngine) return;
  const bool moe = captures(model, CudaGraphScope::Moe);
  if (!moe && !captures(model, CudaGraphScope::Mlp)) return;
  judge.report(
      "model.cuda_graph_modules",
      text("{} runs another micro-batch inside a layer, and a CUDA graph over {} leaves no "
           "place between",
           kOverlap,
           captured_text(model, moe ? CudaGraphScope::Moe : CudaGraphScope::Mlp)),
      "set model.cuda_graph_modules=[attn,moe_router,moe_preprocess], or some of these");
}

void judge_fully_sharded(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (!overlaps(judge) || !judge.config().ddp.use_megatron_fsdp) return;
  const std::int64_t vpp = derive::virtual_stages(model);
  if (model.pipeline_model_parallel_size <= 1 || vpp <= 1) return;
  judge.report("ddp.use_megatron_fsdp",
               text("{} in a virtual pipeline (pp = {}, vpp = {}) runs two chunks at once, and "
                    "ddp.use_megatron_fsdp holds the parameters of one",
                    kOverlap,
                    model.pipeline_model_parallel_size,
                    vpp),
               "use model.virtual_pipeline_model_parallel_size=1, or no full sharding");
}

// Hopper and older GPUs take launches of all streams from few queues, in order of arrival.
bool queues_matter(const Judge& judge) {
  const ModelConfig& model = judge.model();
  const std::optional<int> major = derive::gpu_facts(judge.config().hardware).major;
  return judge.on_gpu() && major && *major < 10 &&
         (model.tensor_model_parallel_size > 1 || model.context_parallel_size > 1);
}

std::string queues(const Judge& judge) {
  const auto given = judge.config().hardware.cuda_device_max_connections;
  return given ? text("{}", *given) : "null";
}

void judge_queues(Judge& judge) {
  if (!overlaps(judge) || !queues_matter(judge)) return;
  judge.report("hardware.cuda_device_max_connections",
               text("hardware.cuda_device_max_connections = {}: tp = {} and cp = {} want 1 on this "
                    "GPU, so that collectives start before the product they hide under, and {} "
                    "wants more",
                    queues(judge),
                    judge.model().tensor_model_parallel_size,
                    judge.model().context_parallel_size,
                    kOverlap),
               "try 1 and 32, and keep the faster");
}

void judge_one_queue(Judge& judge) {
  const auto given = judge.config().hardware.cuda_device_max_connections;
  if (overlaps(judge) || judge.config().ddp.use_megatron_fsdp || !queues_matter(judge)) return;
  if (!given || *given == 1) return;
  judge.report("hardware.cuda_device_max_connections",
               text("hardware.cuda_device_max_connections = {} with tp = {} and cp = {} on Hopper "
                    "or older: collectives may start after the product they hide under",
                    *given,
                    judge.model().tensor_model_parallel_size,
                    judge.model().context_parallel_size),
               "set it to 1");
}

// Overrides that make the overlap legal on CPU ranks; two micro-batches per step.
#define WEFT_OVERLAPPED                                         \
  "model.num_moe_experts=4 model.expert_model_parallel_size=2 " \
  "train.global_batch_size=4 "                                  \
  "comm_overlap.overlap_moe_expert_parallel_comm=true "

constexpr Rule kOverlapConflictsRules[] = {
    {.id = "C20",
     .when = "expert-parallel overlap and model.recompute_granularity = full, without "
             "runtime.recompute_under_overlap",
     .then = "refused",
     .why = "The backward of a layer would first run its forward again, dispatch and combine "
            "included, and wait for both.",
     .example = WEFT_OVERLAPPED "model.recompute_granularity=full model.recompute_method=uniform "
                                "model.recompute_num_layers=1",
     .also = "TC-64",
     .judge = judge_full_recompute},
    {.id = "C21",
     .when = "expert-parallel overlap and model.recompute_method, without full recomputation",
     .then = "refused",
     .why = "The method belongs to full recomputation, which the overlap excludes.",
     .example = WEFT_OVERLAPPED "model.recompute_method=uniform",
     .judge = judge_recompute_method},
    {.id = "C22",
     .when = "expert-parallel overlap and model.recompute_num_layers, without full recomputation",
     .then = "refused",
     .why = "The number belongs to full recomputation, which the overlap excludes.",
     .example = WEFT_OVERLAPPED "model.recompute_num_layers=1",
     .judge = judge_recompute_layers},
    {.id = "C23",
     .when = "expert-parallel overlap and moe among model.recompute_modules, without "
             "runtime.recompute_under_overlap",
     .then = "refused",
     .why = "Running the experts again means dispatching again, in the middle of the backward.",
     .example = WEFT_OVERLAPPED "model.recompute_granularity=selective "
                                "model.recompute_modules=[moe]",
     .judge = judge_recompute_moe},
    {.id = "C24",
     .when = "expert-parallel overlap and model.moe_shared_expert_overlap",
     .then = "refused",
     .why = "Shared experts under the messages of their own micro-batch, or another micro-batch "
            "under them: a message is hidden once.",
     .example = WEFT_OVERLAPPED "model.moe_shared_expert_intermediate_size=64 "
                                "model.moe_shared_expert_overlap=true",
     .also = "TC-66",
     .judge = judge_shared_overlap},
    {.id = "TC-68",
     .when = "expert-parallel overlap, the ncclep backend, and expert_fc1 among "
             "model.offload_modules",
     .then = "refused",
     .why = "The copy to the host would read a buffer that the next dispatch already fills.",
     .example = WEFT_OVERLAPPED "model.moe_token_dispatcher_type=flex "
                                "model.moe_flex_dispatcher_backend=ncclep "
                                "model.fine_grained_activation_offloading=true "
                                "model.offload_modules=[expert_fc1]",
     .judge = judge_offload},
    {.id = "TC-69",
     .when = "expert-parallel overlap and a transformer_engine graph over moe, mlp or the "
             "whole layer",
     .then = "refused",
     .why = "A graph runs from its first node to its last; the overlapped order needs the places "
            "between dispatch, experts and combine.",
     .example = WEFT_OVERLAPPED "model.moe_layer_freq=[0,1] "
                                "model.cuda_graph_impl=transformer_engine "
                                "model.use_te_rng_tracker=true model.cuda_graph_modules=[mlp]",
     .judge = judge_captured_overlap},
    {.id = "TC-75",
     .when = "expert-parallel overlap, ddp.use_megatron_fsdp, pp > 1 and vpp > 1",
     .then = "refused",
     .why = "Two chunks run at once, and full sharding gathers one chunk's parameters at a time.",
     .example = WEFT_OVERLAPPED "model.num_layers=4 model.pipeline_model_parallel_size=2 "
                                "model.virtual_pipeline_model_parallel_size=2 "
                                "ddp.use_megatron_fsdp=true",
     .judge = judge_fully_sharded},
    {.id = "TC-77",
     .kind = Kind::Warning,
     .when = "expert-parallel overlap with tp > 1 or cp > 1 on Hopper or older",
     .then = "warned",
     .why = "CUDA_DEVICE_MAX_CONNECTIONS=1 keeps launches in order, which tensor and context "
            "parallelism rely on; the overlap wants streams that do not wait for each other. "
            "Blackwell keeps order otherwise.",
     .example = WEFT_OVERLAPPED "hardware.gpu=h100 model.bf16=true "
                                "model.tensor_model_parallel_size=2 model.sequence_parallel=true",
     .judge = judge_queues},
    {.id = "W54",
     .when = "hardware.cuda_device_max_connections above 1 with tp > 1 or cp > 1 on Hopper or "
             "older, without expert-parallel overlap and full sharding",
     .then = "refused",
     .why = "The other half of TC-77: without the overlap nothing speaks for more queues, and the "
            "order of launches would be left to chance. Not set is not judged.",
     .example = "hardware.gpu=h100 model.bf16=true model.tensor_model_parallel_size=2 "
                "hardware.cuda_device_max_connections=8",
     .judge = judge_one_queue},
};
#undef WEFT_OVERLAPPED

}  // namespace

std::span<const Rule> overlap_conflict_rules() { return kOverlapConflictsRules; }

}  // namespace weft::rules
