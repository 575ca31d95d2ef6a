#include "weft/report/run_layout.h"

#include <algorithm>

#include "weft/base/casts.h"
#include "weft/base/text.h"
#include "weft/config/learning_steps.h"
#include "weft/derive/derived.h"
#include "weft/derive/pipeline.h"
#include "weft/schedule/passes/interleave.h"

namespace weft::report {

using base::counted;

namespace {

// Dispatcher, unless it is the plain all-to-all.
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

std::string model_text(const config::Config& config) {
  const config::ModelConfig& model = config.model;
  const derive::ParameterCount parameters = derive::parameters_of(model);
  std::string experts;
  if (model.experts() > 0) {
    experts = base::text(", {} of which a token takes {}",
                         counted(model.experts(), "expert"),
                         model.moe_router_topk);
  }
  return base::text("{}{}; {:.1f} M parameters ({:.1f} M active), {}",
                    counted(model.num_layers, "layer"),
                    experts,
                    static_cast<double>(parameters.total) / 1e6,
                    static_cast<double>(parameters.active) / 1e6,
                    name_of(model.params_dtype));
}

std::string ranks_text(const config::Config& config) {
  const bool is_pretended = config::is_pretended(config.runtime.backend);
  return base::text("{} ({}), {}, {} each; order: {}",
                    counted(derive::layout_of(config).world, "rank"),
                    is_pretended ? "pretended, one runs" : config::word(config.runtime.backend),
                    layout_text(config.model),
                    counted(config.runtime.threads_per_rank, "thread"),
                    order_text(config));
}

std::string batch_text(const config::Config& config) {
  return base::text("{} of {} a step ({}), in micro-batches of {}",
                    counted(config.train.global_batch_size, "sequence"),
                    counted(config.model.seq_length, "token"),
                    counted(derive::tokens_per_step(config), "token"),
                    config.train.micro_batch_size);
}

std::string rate_text(const config::Config& config) {
  const config::SchedulerConfig& scheduler = config.scheduler;
  std::string line = base::text("{:g}", config.optimizer.lr);
  const double last = config::decay_steps(config), warmup = config::warmup_steps(config);
  const std::string steps = warmup == 1 ? "1 step" : base::text("{:.10g} steps", warmup);
  if (warmup > last) {
    return line +
           base::text(" after {} of warm-up, which the run does not reach: it is {:g} at step {}",
                      steps,
                      config.optimizer.lr * base::number(config.train.train_iters) / warmup,
                      config.train.train_iters);
  }
  if (warmup > 0) line += base::text(" after {} of warm-up", steps);
  if (scheduler.lr_decay_style == config::LrDecay::Constant) return line + ", constant";
  return line + base::text(", {} to {:g} at step {:.10g}",
                           config::word(scheduler.lr_decay_style),
                           config.optimizer.min_lr,
                           last);
}

}  // namespace weft::report
