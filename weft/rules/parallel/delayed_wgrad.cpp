// Weight gradients split from the backward, as cover for communication.
#include "weft/rules/captured.h"
#include "weft/rules/judge.h"
#include "weft/rules/topics.h"

namespace weft::rules {

using namespace config;
namespace {

using base::text;

// True if the scope is listed, with any implementation, or is captured with the whole layer.
bool holds(const ModelConfig& model, CudaGraphScope scope) {
  return names_scope(model, scope) || captures(model, scope);
}

bool holds_attention(const ModelConfig& model) { return holds(model, CudaGraphScope::Attn); }

// The shared expert runs beside the router, unless it overlaps with the dispatch.
bool holds_shared_expert(const ModelConfig& model) {
  return holds(model, CudaGraphScope::MoeRouter) && model.moe_shared_expert_intermediate_size &&
         !model.moe_shared_expert_overlap;
}

// "CUDA graphs over attn", or the listed names only.
std::string graphs_text(const ModelConfig& model) {
  const CudaGraphScope scope =
      holds_attention(model) ? CudaGraphScope::Attn : CudaGraphScope::MoeRouter;
  const std::string part = captured_text(model, scope);
  const char* beside = scope == CudaGraphScope::MoeRouter ? " with the shared expert" : "";
  if (model.cuda_graph_impl != CudaGraphImpl::None) {
    return text("CUDA graphs over {}{}", part, beside);
  }
  return text("{}{} named for CUDA graphs (names count also while model.cuda_graph_impl = none)",
              part,
              beside);
}

// Instruction for keeping the delayed weight gradients' modules out of the graphs.
std::string weights_left_out_text(const ModelConfig& model) {
  if (!holds_attention(model)) return leave_out_text(model, CudaGraphScope::MoeRouter);
  const char* beside = holds_shared_expert(model) ? ", and moe_router" : "";
  return leave_out_text(model, CudaGraphScope::Attn) + beside;
}

void judge_delay_alone(Judge& judge) {
  const CommOverlapConfig& overlap = judge.overlap();
  if (!overlap.delay_wgrad_compute || overlap.overlap_moe_expert_parallel_comm) return;
  judge.report("comm_overlap.delay_wgrad_compute",
               "comm_overlap.delay_wgrad_compute fills the gaps of the overlapped order, and "
               "comm_overlap.overlap_moe_expert_parallel_comm = false",
               "set comm_overlap.overlap_moe_expert_parallel_comm=true, or leave it out");
}

void judge_captured_addresses(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (!judge.overlap().delay_wgrad_compute || model.gradient_accumulation_fusion) return;
  if (!holds_attention(model) && !holds_shared_expert(model)) return;
  judge.report(
      "model.gradient_accumulation_fusion",
      text("comm_overlap.delay_wgrad_compute with {} writes weight gradients from a "
           "graph, which needs addresses that stay: "
           "model.gradient_accumulation_fusion = false allocates new ones",
           graphs_text(model)),
      text("set model.gradient_accumulation_fusion=true, or {}", weights_left_out_text(model)));
}

void judge_captured_biases(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (!judge.overlap().delay_wgrad_compute || !holds_attention(model)) return;
  if (!model.add_bias_linear && !model.add_qkv_bias) return;
  const char* key = model.add_bias_linear ? "model.add_bias_linear" : "model.add_qkv_bias";
  judge.report(key,
               text("{} = true: bias gradients of the attention come with its backward, and "
                    "comm_overlap.delay_wgrad_compute with {} delays what the graph has already "
                    "run",
                    key,
                    graphs_text(model)),
               text("set {}=false or comm_overlap.delay_wgrad_compute=false, or {}",
                    key,
                    leave_out_text(model, CudaGraphScope::Attn)));
}

void judge_two_covers(Judge& judge) {
  const CommOverlapConfig& overlap = judge.overlap();
  if (!judge.model().overlap_dispatch_backward_with_experts_wgrad) return;
  if (!overlap.overlap_moe_expert_parallel_comm && !overlap.delay_wgrad_compute) return;
  const char* other = overlap.overlap_moe_expert_parallel_comm
                          ? "comm_overlap.overlap_moe_expert_parallel_comm"
                          : "comm_overlap.delay_wgrad_compute";
  judge.report("model.overlap_dispatch_backward_with_experts_wgrad",
               text("model.overlap_dispatch_backward_with_experts_wgrad and {} exclude each other: "
                    "both place the experts' weight gradients",
                    other),
               "set one of them to false");
}

constexpr Rule kDelayedWgradRules[] = {
    {.id = "C28",
     .when = "comm_overlap.delay_wgrad_compute without "
             "comm_overlap.overlap_moe_expert_parallel_comm",
     .then = "refused",
     .why = "Only the overlapped order has places for them: beside the messages of another "
            "micro-batch.",
     .example = "comm_overlap.delay_wgrad_compute=true",
     .also = "TC-70",
     .judge = judge_delay_alone},
    {.id = "C30",
     .when = "comm_overlap.delay_wgrad_compute, weight gradients inside a captured scope, and "
             "model.gradient_accumulation_fusion = false",
     .then = "refused",
     .why =
         "A graph writes where it wrote when it was captured. Inside are: attn; moe_router where "
         "a shared expert exists and does not overlap with the dispatch (C29); and a whole "
         "layer, which Megatron forgets. Scopes count by name, also with "
         "model.cuda_graph_impl=none.",
     .example = "model.num_moe_experts=4 model.expert_model_parallel_size=2 "
                "train.global_batch_size=4 comm_overlap.overlap_moe_expert_parallel_comm=true "
                "comm_overlap.delay_wgrad_compute=true model.bf16=true "
                "model.cuda_graph_impl=transformer_engine model.use_te_rng_tracker=true "
                "model.cuda_graph_modules=[attn] "
                "model.gradient_accumulation_fusion=false",
     .also = "C29",
     .judge = judge_captured_addresses},
    {.id = "C31",
     .when = "comm_overlap.delay_wgrad_compute, captured attention, and add_bias_linear or "
             "add_qkv_bias",
     .then = "refused",
     .why = "Bias gradients are made with the backward, not with the weight gradients, so a "
            "captured attention cannot delay them. A captured router alone has no such biases.",
     .example = "model.num_moe_experts=4 model.expert_model_parallel_size=2 "
                "train.global_batch_size=4 comm_overlap.overlap_moe_expert_parallel_comm=true "
                "comm_overlap.delay_wgrad_compute=true model.bf16=true "
                "model.cuda_graph_impl=transformer_engine model.use_te_rng_tracker=true "
                "model.cuda_graph_modules=[attn] "
                "model.add_qkv_bias=true",
     .judge = judge_captured_biases},
    {.id = "TC-72",
     .when = "model.overlap_dispatch_backward_with_experts_wgrad with "
             "comm_overlap.overlap_moe_expert_parallel_comm or comm_overlap.delay_wgrad_compute",
     .then = "refused",
     .why = "It covers the dispatch's way back inside one micro-batch; the overlapped order covers "
            "it with another one. The weight gradients can only be in one place.",
     .example = "model.num_moe_experts=4 model.expert_model_parallel_size=2 "
                "train.global_batch_size=4 comm_overlap.overlap_moe_expert_parallel_comm=true "
                "model.overlap_dispatch_backward_with_experts_wgrad=true",
     .judge = judge_two_covers},
};

}  // namespace

std::span<const Rule> delayed_wgrad_rules() { return kDelayedWgradRules; }

}  // namespace weft::rules
