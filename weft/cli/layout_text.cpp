#include "weft/cli/layout_text.h"

#include "weft/base/text.h"
#include "weft/derive/pipeline.h"
#include "weft/schedule/passes/interleave.h"

namespace weft::cli {

namespace {

// Who moves the tokens, where it is not the plain all-to-all.
std::string dispatcher_text(const config::ModelConfig& model) {
  switch (model.moe_token_dispatcher_type) {
    case config::Dispatcher::AllGather:
      return ", allgather";
    case config::Dispatcher::Flex:
      return base::text(
          ", {}",
          config::word(model.moe_flex_dispatcher_backend.value_or(config::FlexBackend::DeepEp)));
    case config::Dispatcher::AllToAll:
    case config::Dispatcher::AllToAllSeq:
      break;
  }
  return "";
}

}  // namespace

std::string layout_text(const config::ModelConfig& model) {
  std::string text;
  const auto add = [&](const char* axis, std::int64_t size) {
    if (size > 1) text += base::text("{} {}, ", axis, size);
  };
  add("tp", model.tensor_model_parallel_size);
  if (model.context_parallel_size > 1) {
    std::vector<std::string_view> kinds;
    for (const config::CpComm kind : model.cp_comm_type) {
      const std::string_view word = config::word(kind);
      if (std::ranges::find(kinds, word) == kinds.end()) kinds.push_back(word);
    }
    text += base::text("cp {} by {}, ", model.context_parallel_size, fmt::join(kinds, " and "));
  }
  add("pp", model.pipeline_model_parallel_size);
  add("vpp", derive::virtual_stages(model));
  if (model.experts() > 0) {
    add("etp", model.expert_tensor_parallel_size.value_or(model.tensor_model_parallel_size));
  }
  return text + base::text("ep {}", model.expert_model_parallel_size) + dispatcher_text(model);
}

std::string order_text(const config::Config& config) {
  if (!config.runtime.schedule.empty()) return "read from " + config.runtime.schedule;
  std::string text = "plain";
  if (config.comm_overlap.overlap_moe_expert_parallel_comm.automatic) {
    text = "plain or forward beside backward, as the first steps show";
  } else if (config.comm_overlap.overlap_moe_expert_parallel_comm) {
    text = "forward beside backward";
    if (schedule::dispatch_beside(config.model) == schedule::DispatchBeside::Attention) {
      text += " (dispatches beside attention)";
    }
    if (config.comm_overlap.delay_wgrad_compute) text += ", weight gradients delayed";
    if (config.model.ep_overlap_early_attn_memory_release) text += ", attention released early";
  }
  if (config.model.overlap_dispatch_backward_with_experts_wgrad) {
    text += ", experts' weight gradients under dispatch";
  }
  if (config.model.moe_shared_expert_overlap) text += ", shared experts under what travels";
  if (const std::int64_t slices = config.comm_overlap.moe_token_slices; slices > 1) {
    text += base::text(", tokens in {} slices", slices);
  }
  if (config.comm_overlap.tp_comm_overlap) text += ", tensor-parallel exchange in steps";
  if (config.ddp.use_distributed_optimizer) text += ", distributed optimizer";
  if (config.ddp.overlap_grad_reduce) text += ", gradients reduced under the backward";
  if (config.ddp.overlap_param_gather) text += ", weights gathered under the forward";
  if (config.model.pipeline_model_parallel_size == 1) return text;
  if (config.runtime.pipeline_schedule != config::PipelineSchedule::Auto) {
    text = base::text("{}, {}", config::word(config.runtime.pipeline_schedule), text);
  }
  return text + (derive::overlaps_p2p(config) ? ", stages exchange under compute"
                                              : ", stages exchange at fixed points");
}

}  // namespace weft::cli
