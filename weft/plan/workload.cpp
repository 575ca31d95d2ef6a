#include "weft/plan/workload.h"

#include "weft/base/casts.h"
#include "weft/derive/dispatch.h"

namespace weft::plan {

using base::number;
using config::ModelConfig;

Number number_of(const ModelConfig& model) {
  if (model.fp4) return Number::Nvfp4;
  if (!model.fp8) return Number::Bf16;
  return model.fp8_recipe == config::Fp8Recipe::Mxfp8 ? Number::Mxfp8 : Number::Fp8;
}

bool host_waits_for_counts(const ModelConfig& model) {
  if (model.experts() == 0 || model.moe_pad_expert_input_to_capacity) return false;
  return model.cuda_graph_impl != config::CudaGraphImpl::FullIteration && !model.moe_paged_stash;
}

Workload workload_of(const config::Config& config, double imbalance) {
  const ModelConfig& model = config.model;
  Workload work{.number = number_of(model),
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
