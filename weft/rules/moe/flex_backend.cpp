// Requirements of the flex dispatcher's backends.
#include "weft/derive/derived.h"
#include "weft/derive/gpu.h"
#include "weft/rules/chosen.h"
#include "weft/rules/judge.h"
#include "weft/rules/topics.h"

namespace weft::rules {

using namespace config;
namespace {

using base::text;

using derive::kBlackwell;

void judge_deepep_padding(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (!dispatches_by(model, FlexBackend::DeepEp) || !model.moe_pad_expert_input_to_capacity) return;
  judge.report(
      "model.moe_pad_expert_input_to_capacity",
      text("model.moe_pad_expert_input_to_capacity (model.moe_expert_capacity_factor = {}) "
           "with model.moe_flex_dispatcher_backend = deepep, which sends what the router "
           "selects",
           model.moe_expert_capacity_factor.value_or(0)),
      "use the alltoall dispatcher or hybridep, or leave the padding out");
}

void judge_ncclep_elsewhere(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (model.moe_flex_dispatcher_backend != FlexBackend::NcclEp ||
      model.moe_token_dispatcher_type == Dispatcher::Flex)
    return;
  judge.report("model.moe_flex_dispatcher_backend",
               text("model.moe_flex_dispatcher_backend = ncclep with "
                    "model.moe_token_dispatcher_type = {}",
                    word(model.moe_token_dispatcher_type)),
               "set model.moe_token_dispatcher_type=flex");
}

void judge_ncclep_weights(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (!dispatches_by(model, FlexBackend::NcclEp) || !model.moe_use_grouped_tensor) return;
  if (model.use_transformer_engine_op_fuser) return;
  judge.report("model.moe_use_grouped_tensor",
               "model.moe_use_grouped_tensor with ncclep and without "
               "model.use_transformer_engine_op_fuser",
               "set model.use_transformer_engine_op_fuser=true");
}

bool sends_mxfp8(const ModelConfig& model) {
  return model.moe_dispatch_fwd_dtype == base::DType::MXFP8 ||
         model.moe_combine_bwd_dtype == base::DType::MXFP8;
}

const char* mxfp8_key(const ModelConfig& model) {
  return model.moe_dispatch_fwd_dtype == base::DType::MXFP8 ? "model.moe_dispatch_fwd_dtype"
                                                            : "model.moe_combine_bwd_dtype";
}

// Names the carrier of the rows in place of ncclep.
std::string carrier_text(const ModelConfig& model) {
  if (model.moe_token_dispatcher_type != Dispatcher::Flex) {
    return text("model.moe_token_dispatcher_type = {}", word(model.moe_token_dispatcher_type));
  }
  const auto backend = model.moe_flex_dispatcher_backend;
  return text("model.moe_flex_dispatcher_backend = {}", backend ? word(*backend) : "null");
}

void judge_wire(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (!sends_mxfp8(model) || dispatches_by(model, FlexBackend::NcclEp)) return;
  judge.report(mxfp8_key(model),
               text("{} = mxfp8 needs ncclep, and {}", mxfp8_key(model), carrier_text(model)),
               "set model.moe_token_dispatcher_type=flex model.moe_flex_dispatcher_backend=ncclep, "
               "or bf16 on the wire");
}

bool is_fused(const ModelConfig& model) {
  return model.use_transformer_engine_op_fuser && model.moe_grouped_gemm;
}

void judge_wire_reader(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (!sends_mxfp8(model) || is_fused(model)) return;
  if (!dispatches_by(model, FlexBackend::NcclEp)) return;
  judge.report(mxfp8_key(model),
               text("{} = mxfp8 with model.use_transformer_engine_op_fuser = {}, "
                    "model.moe_grouped_gemm = {}",
                    mxfp8_key(model),
                    model.use_transformer_engine_op_fuser,
                    model.moe_grouped_gemm),
               "set both to true, or bf16 on the wire");
}

void judge_alone(Judge& judge) {
  const ModelConfig& model = judge.model();
  // CPU ranks have no such buffers.
  const bool alone = (judge.on_gpu() && dispatches_by(model, FlexBackend::DeepEp)) ||
                     dispatches_by(model, FlexBackend::NcclEp);
  const grid::Layout layout = derive::layout_of(judge.config());
  if (!alone || model.experts() == 0 || layout.etp > 1 || layout.ep > 1) return;
  judge.report("model.moe_flex_dispatcher_backend",
               text("model.moe_flex_dispatcher_backend = {} with etp*ep = 1: no token leaves its "
                    "rank",
                    word(*model.moe_flex_dispatcher_backend)),
               "raise model.expert_model_parallel_size, or set "
               "model.moe_token_dispatcher_type=alltoall");
}

void judge_ncclep_shapes(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (!dispatches_by(model, FlexBackend::NcclEp)) return;
  if (model.moe_expert_capacity_factor || model.moe_pad_expert_input_to_capacity) {
    judge.report("model.moe_flex_dispatcher_backend",
                 "ncclep drops and pads nothing, and model.moe_expert_capacity_factor or "
                 "model.moe_pad_expert_input_to_capacity is set",
                 "leave both out, or use another dispatcher");
  }
  if (!model.moe_expert_rank_capacity_factor) return;
  if (!is_fused(model)) {
    judge.report(
        "model.moe_expert_rank_capacity_factor",
        text("model.moe_expert_rank_capacity_factor = {} with ncclep fixes the shape, which "
             "only the fused grouped feed-forward takes",
             *model.moe_expert_rank_capacity_factor),
        "set model.use_transformer_engine_op_fuser=true and model.moe_grouped_gemm=true");
  }
  if (!judge.sound_section("hardware.")) return;
  const derive::GpuFacts gpu = derive::gpu_facts(judge.config().hardware);
  if (!is_quantized(model) || gpu.major.value_or(kBlackwell) >= kBlackwell) return;
  judge.report(
      "model.moe_expert_rank_capacity_factor",
      text("a fixed shape with ncclep in fp8 or fp4 needs compute capability 10, and {} has "
           "{}",
           gpu.name,
           *gpu.major),
      "leave model.moe_expert_rank_capacity_factor out, or compute in bf16");
}

constexpr Rule kFlexBackendRules[] = {
    {.id = "TC-21",
     .when = "flex with deepep and model.moe_pad_expert_input_to_capacity",
     .then = "refused",
     .why = "deepep sends the rows that the router selects and no others.",
     .example = "model.num_moe_experts=4 model.expert_model_parallel_size=2 "
                "train.global_batch_size=2 model.moe_token_dispatcher_type=flex "
                "model.moe_flex_dispatcher_backend=deepep model.moe_expert_capacity_factor=1 "
                "model.moe_pad_expert_input_to_capacity=true",
     .judge = judge_deepep_padding},
    {.id = "TC-22",
     .when = "ncclep while the dispatcher is not flex",
     .then = "refused",
     .why = "It is a backend of the flex dispatcher.",
     .example = "model.num_moe_experts=4 model.moe_flex_dispatcher_backend=ncclep",
     .judge = judge_ncclep_elsewhere},
    {.id = "TC-23",
     .when = "ncclep and model.moe_use_grouped_tensor without the op fuser",
     .then = "refused",
     .why = "Only the fused feed-forward reads grouped tensors behind this backend.",
     .example = "model.num_moe_experts=4 model.expert_model_parallel_size=2 "
                "train.global_batch_size=2 model.moe_token_dispatcher_type=flex "
                "model.moe_flex_dispatcher_backend=ncclep model.moe_use_grouped_tensor=true",
     .judge = judge_ncclep_weights},
    {.id = "TC-24",
     .when = "mxfp8 on the wire without ncclep",
     .then = "refused",
     .why = "No other backend carries the scales beside the rows.",
     .example = "model.num_moe_experts=4 model.moe_dispatch_fwd_dtype=mxfp8",
     .judge = judge_wire},
    {.id = "TC-25",
     .when = "mxfp8 on the wire without the op fuser and grouped products",
     .then = "refused",
     .why = "What arrives in mxfp8 goes into the fused grouped feed-forward as it is.",
     .example = "model.num_moe_experts=4 model.expert_model_parallel_size=2 "
                "train.global_batch_size=2 model.moe_token_dispatcher_type=flex "
                "model.moe_flex_dispatcher_backend=ncclep model.moe_combine_bwd_dtype=mxfp8",
     .judge = judge_wire_reader},
    {.id = "TC-28",
     .when = "flex with deepep (on GPUs) or ncclep and etp*ep = 1",
     .then = "refused",
     .why = "Their buffers are made for a group of ranks.",
     .example = "hardware.gpu=h100 model.num_moe_experts=4 model.moe_token_dispatcher_type=flex "
                "model.moe_flex_dispatcher_backend=deepep",
     .judge = judge_alone},
    {.id = "TC-29",
     .when =
         "ncclep with a capacity of experts; or with a budget for the rank, without the op fuser "
         "and grouped products or, in fp8 or fp4, below compute capability 10",
     .then = "refused",
     .why = "The backend drops and pads nothing; a fixed shape is read by the fused feed-forward "
            "only, whose low-precision kernels are Blackwell's.",
     .example = "model.num_moe_experts=4 model.expert_model_parallel_size=2 "
                "train.global_batch_size=2 model.moe_token_dispatcher_type=flex "
                "model.moe_flex_dispatcher_backend=ncclep model.moe_expert_capacity_factor=1",
     .judge = judge_ncclep_shapes},
};

}  // namespace

std::span<const Rule> flex_backend_rules() { return kFlexBackendRules; }

}  // namespace weft::rules
