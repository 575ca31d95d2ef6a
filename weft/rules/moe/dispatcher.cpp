// Dispatchers, and the GPUs that they run on. flex_backend.cpp has their backends.
#include "weft/derive/gpu.h"
#include "weft/rules/chosen.h"
#include "weft/rules/judge.h"
#include "weft/rules/topics.h"

namespace weft::rules {

using namespace config;
namespace {

using base::text;

bool is_flex(const ModelConfig& model) {
  return model.moe_token_dispatcher_type == Dispatcher::Flex;
}

void judge_no_backend(Judge& judge) {
  if (!is_flex(judge.model()) || judge.model().moe_flex_dispatcher_backend) return;
  judge.set("model.moe_token_dispatcher_type",
            "alltoall",
            "the flex dispatcher needs a backend, and model.moe_flex_dispatcher_backend = null");
}

// Applies only to the flex dispatcher (F7); other dispatchers ignore the backend.
void judge_gpu(Judge& judge) {
  const auto backend = judge.model().moe_flex_dispatcher_backend;
  const HardwareConfig& hardware = judge.config().hardware;
  if (!is_flex(judge.model()) || !backend || !judge.sound_section("hardware.")) return;
  if (!judge.on_gpu() || derive::supports(*backend, hardware).value_or(true)) return;
  const derive::GpuFacts gpu = derive::gpu_facts(hardware);
  judge.report("model.moe_flex_dispatcher_backend",
               text("model.moe_flex_dispatcher_backend = {} on {} (compute capability {}): it runs "
                    "on {}",
                    word(*backend),
                    gpu.name.empty() ? "this GPU" : gpu.name,
                    gpu.major.value_or(0),
                    derive::supported_gpus(*backend)),
               "set model.moe_token_dispatcher_type=alltoall, or another backend");
}

void judge_uneven_inputs(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (!dispatches_by(model, FlexBackend::HybridEp)) return;
  if (model.cuda_graph_impl != CudaGraphImpl::None) return;
  judge.set(
      "model.moe_hybridep_pad_uneven_dispatch_inputs",
      "true",
      "the GPU library takes equally many rows from every rank, and without CUDA graphs their "
      "number may differ; CPU ranks may differ as they are");
}

void judge_backend_unused(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (is_flex(model)) return;
  const auto idle = [&](const char* key, std::string_view value) {
    judge.report(key,
                 text("{} = {} has no effect while model.moe_token_dispatcher_type = {}",
                      key,
                      value,
                      word(model.moe_token_dispatcher_type)),
                 "set model.moe_token_dispatcher_type=flex, or leave it out");
  };
  const auto backend = model.moe_flex_dispatcher_backend;
  if (backend && *backend != FlexBackend::NcclEp) {
    idle("model.moe_flex_dispatcher_backend", word(*backend));
  }
  // On CPU ranks, W22 reports it for any dispatcher.
  if (const auto sms = model.moe_flex_dispatcher_num_sms; sms && judge.on_gpu()) {
    idle("model.moe_flex_dispatcher_num_sms", text("{}", *sms));
  }
  if (model.moe_hybridep_pad_uneven_dispatch_inputs) {
    idle("model.moe_hybridep_pad_uneven_dispatch_inputs", "true");
  }
}

constexpr Rule kDispatcherRules[] = {
    {.id = "F8",
     .kind = Kind::Automatic,
     .when = "model.moe_token_dispatcher_type = flex and model.moe_flex_dispatcher_backend is null",
     .then = "model.moe_token_dispatcher_type := alltoall",
     .why =
         "The flex dispatcher is nothing without a backend; whoever clears the backend means the "
         "plain exchange.",
     .example = "model.num_moe_experts=4 model.moe_token_dispatcher_type=flex",
     .judge = judge_no_backend},
    {.id = "F9",
     .when = "the flex dispatcher with a backend that does not run on the GPU",
     .then = "refused",
     .why = "deepep runs on Ampere, Hopper and B200/B300, hybridep on GB200/GB300 as well. On CPU "
            "ranks nothing can be probed and any is accepted; where the dispatcher is not flex the "
            "backend is not looked at (F7).",
     .example = "hardware.gpu=gb200 model.num_moe_experts=4 model.expert_model_parallel_size=2 "
                "train.global_batch_size=2 model.moe_token_dispatcher_type=flex "
                "model.moe_flex_dispatcher_backend=deepep",
     .also = "F7 V29",
     .judge = judge_gpu},
    {.id = "F10",
     .kind = Kind::Automatic,
     .when = "flex with hybridep and no CUDA graph",
     .then = "model.moe_hybridep_pad_uneven_dispatch_inputs := true",
     .why =
         "It costs an all-reduce and padding for each dispatch, even where counts are equal. With "
         "graphs the key is left alone and counts must be equal.",
     .example = "model.num_moe_experts=4 model.moe_token_dispatcher_type=flex "
                "model.moe_flex_dispatcher_backend=hybridep",
     .also = "B4",
     .judge = judge_uneven_inputs},
    {.id = "F11",
     .kind = Kind::Warning,
     .when =
         "a backend of the flex dispatcher, or on GPUs its SMs, while the dispatcher is not flex",
     .then = "warned",
     .why =
         "Naming a backend does not choose the dispatcher. The harness flag of the same name does "
         "both.",
     .example = "model.num_moe_experts=4 model.moe_flex_dispatcher_backend=deepep",
     .judge = judge_backend_unused},
};

}  // namespace

std::span<const Rule> dispatcher_rules() { return kDispatcherRules; }

}  // namespace weft::rules
