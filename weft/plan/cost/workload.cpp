#include "weft/plan/cost/workload.h"

#include "weft/base/casts.h"
#include "weft/derive/dispatch.h"

namespace weft::plan {

using base::number;
using config::ModelConfig;

namespace {

// Works for judged and unjudged configs: params_dtype follows bf16 and fp16.
DType wide_number(const ModelConfig& model) {
  const bool is_fp32 = model.params_dtype == base::DType::F32 && !model.bf16 && !model.fp16;
  return is_fp32 && !model.fp8 && !model.fp4 ? DType::F32 : DType::BF16;
}

}  // namespace

DType number_of(const ModelConfig& model) {
  if (model.fp4) return DType::NVFP4;
  if (!model.fp8) return wide_number(model);
  return model.fp8_recipe == config::Fp8Recipe::Mxfp8 ? DType::MXFP8 : DType::F8E4M3;
}

bool host_waits_for_counts(const ModelConfig& model) {
  if (model.experts() == 0 || model.moe_pad_expert_input_to_capacity) return false;
  return model.cuda_graph_impl != config::CudaGraphImpl::FullIteration && !model.moe_paged_stash;
}

Workload workload_on(const Hardware& hardware, const config::Config& config, double imbalance) {
  Workload work = workload_of(config, imbalance);
  work.program = hardware.work;
  return work;
}

Workload workload_of(const config::Config& config, double imbalance) {
  const ModelConfig& model = config.model;
  Workload work{.number = number_of(model),
                .wide = wide_number(model),
                .element = wide_number(model) == DType::F32 ? 4.0 : 2.0,
                .tokens = number(config.train.micro_batch_size * model.seq_length /
                                 model.context_parallel_size),
                .own_tokens = number(derive::tokens_of_rank(config)),
                .sequence = number(model.seq_length),
                .tp = number(model.tensor_model_parallel_size),
                .cp = number(model.context_parallel_size),
                .ep = number(model.expert_model_parallel_size)};
  if (model.experts() == 0) return work;
  const config::ExpertGrid grid = model.expert_grid();
  work.etp = number(model.expert_shards());
  work.local_experts = number(grid.local());
  work.rows = work.own_tokens * number(grid.per_token);
  work.drops = model.moe_expert_capacity_factor.has_value();
  work.imbalance = work.drops ? 1 : imbalance;
  work.rows *= work.drops ? *model.moe_expert_capacity_factor : work.imbalance;
  work.fuses_experts = model.use_transformer_engine_op_fuser;
  work.is_flex = model.moe_token_dispatcher_type == config::Dispatcher::Flex;
  return work;
}

}  // namespace weft::plan
