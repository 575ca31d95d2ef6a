#include "weft/plan/cost/layers_alone.h"

#include "weft/derive/derived.h"
#include "weft/rules/missing.h"

namespace weft::plan {

using config::Config;

Config layers_alone(const Config& config, std::int64_t layer, Recomputed whole) {
  Config alone = rules::without_missing(config);
  config::ModelConfig& model = alone.model;
  const grid::Layout layout = derive::layout_of(config);
  alone.runtime.world_size = layout.world / layout.pp;
  alone.runtime.pipeline_schedule = config::PipelineSchedule::Auto;
  alone.runtime.schedule.clear();
  alone.checkpoint = {};
  alone.ddp = {};
  alone.optimizer.use_distributed_optimizer = false;
  alone.optimizer.optimizer_cpu_offload = false;
  alone.optimizer.overlap_param_gather_with_optimizer_step = false;
  alone.comm_overlap.defer_embedding_wgrad_compute = false;
  model.pipeline_model_parallel_size = 1;
  model.virtual_pipeline_model_parallel_size.reset();
  model.pipeline_model_parallel_layout.clear();
  model.num_layers_in_first_pipeline_stage.reset();
  model.num_layers_in_last_pipeline_stage.reset();
  model.account_for_embedding_in_pipeline_split = false;
  model.account_for_loss_in_pipeline_split = false;
  model.mtp_num_layers.reset();
  model.fine_grained_activation_offloading = false;
  model.moe_layer_freq = {1};
  if (!config.model.is_moe_layer(layer)) {
    model.num_moe_experts.reset();
    model.moe_ffn_hidden_size.reset();
    model.expert_model_parallel_size = 1;
    model.expert_tensor_parallel_size.reset();
    alone.comm_overlap.overlap_moe_expert_parallel_comm = false;
    alone.comm_overlap.delay_wgrad_compute = false;
  }
  if (model.recompute_granularity == config::RecomputeGranularity::Full) {
    model.recompute_method = config::RecomputeMethod::Uniform;
    model.recompute_num_layers = 1;
    if (whole == Recomputed::No) model.recompute_granularity.reset();
  }
  return alone;
}

}  // namespace weft::plan
