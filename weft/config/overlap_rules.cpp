// Pipelines and what overlaps: the rules between model.*, comm_overlap.* and the batch.
#include "weft/config/derived.h"
#include "weft/config/findings.h"
#include "weft/config/pipeline.h"
#include "weft/config/validate.h"

namespace weft::config {
namespace {

void check_stages(const Config& config, Findings& findings) {
  const ModelConfig& model = config.model;
  if (!findings.sound({"model.num_layers",
                       "model.pipeline_model_parallel_size",
                       "model.virtual_pipeline_model_parallel_size"})) {
    return;
  }
  if (virtual_stages(model) > 1 && model.pipeline_model_parallel_size == 1) {
    findings.complain(
        "model.virtual_pipeline_model_parallel_size = {} interleaves the chunks of a pipeline, and "
        "model.pipeline_model_parallel_size = 1 is none: raise it, or unset the former",
        virtual_stages(model));
    return;
  }
  for (const std::string& complaint : stages_of(model).complaints) {
    findings.complain("{}", complaint);
  }
}

// Rules of the interleaved order over the micro-batches of one rank.
void check_interleaving(const Config& config, Findings& findings) {
  const ModelConfig& model = config.model;
  if (virtual_stages(model) <= 1 || !findings.empty()) return;
  const grid::Layout layout = layout_of(config);
  const std::int64_t dp = layout.world / (layout.tp * layout.cp * layout.pp);
  const std::int64_t batches = micro_batches(config.train, dp);
  const std::int64_t group = micro_batch_group(model);
  if (group < layout.pp || group > batches) {
    findings.complain(
        "an interleaved pipeline takes model.microbatch_group_size_per_vp_stage = {} micro-batches "
        "in a row, at least pp = {} and at most the {} of a step (train.global_batch_size / "
        "(train.micro_batch_size * dp)): {}",
        group,
        layout.pp,
        batches,
        batches < layout.pp ? "raise train.global_batch_size" : "use a number between");
    return;
  }
  const std::int64_t rest = batches % group;
  if (rest != 0 && rest < layout.pp) {
    findings.complain(
        "{} micro-batches leave a last group of {} by model.microbatch_group_size_per_vp_stage = "
        "{}, fewer than pp = {}: use a multiple of {} micro-batches (train.global_batch_size), or "
        "another group size",
        batches,
        rest,
        group,
        layout.pp,
        group);
  }
}

void check_expert_overlap(const Config& config, Findings& findings) {
  const ModelConfig& model = config.model;
  const CommOverlapConfig& overlap = config.comm_overlap;
  if (overlap.overlap_moe_expert_parallel_comm) {
    if (model.num_moe_experts < 2 || model.expert_model_parallel_size < 2) {
      findings.complain(
          "comm_overlap.overlap_moe_expert_parallel_comm hides expert-parallel communication, and "
          "model.num_moe_experts = {} on model.expert_model_parallel_size = {} has none: use at "
          "least 2 of each, or unset it",
          model.num_moe_experts,
          model.expert_model_parallel_size);
    }
    if (model.pipeline_model_parallel_size > 1 && !model.virtual_pipeline_model_parallel_size) {
      findings.complain(
          "comm_overlap.overlap_moe_expert_parallel_comm with model.pipeline_model_parallel_size = "
          "{} needs model.virtual_pipeline_model_parallel_size set: 1 overlaps a plain pipeline",
          model.pipeline_model_parallel_size);
    }
  }
  if (overlap.delay_wgrad_compute && !overlap.overlap_moe_expert_parallel_comm) {
    findings.complain(
        "comm_overlap.delay_wgrad_compute delays into the overlapped order: set "
        "comm_overlap.overlap_moe_expert_parallel_comm=true, or unset it");
  }
  if (model.ep_overlap_early_attn_memory_release && !overlap.overlap_moe_expert_parallel_comm) {
    findings.complain(
        "model.ep_overlap_early_attn_memory_release changes the overlapped order: set "
        "comm_overlap.overlap_moe_expert_parallel_comm=true, or unset it");
  }
  if (model.overlap_dispatch_backward_with_experts_wgrad &&
      overlap.overlap_moe_expert_parallel_comm) {
    findings.complain(
        "model.overlap_dispatch_backward_with_experts_wgrad and "
        "comm_overlap.overlap_moe_expert_parallel_comm exclude each other: unset one");
  }
}

void check_p2p(const Config& config, Findings& findings) {
  const CommOverlapConfig& overlap = config.comm_overlap;
  if (overlap.overlap_p2p_comm.value_or(false) && overlap.batch_p2p_comm.value_or(false)) {
    findings.complain(
        "comm_overlap.overlap_p2p_comm and comm_overlap.batch_p2p_comm exclude each other: set one "
        "of them to false");
  }
}

}  // namespace

void check_overlap(const Config& config, Findings& findings) {
  check_stages(config, findings);
  check_expert_overlap(config, findings);
  check_p2p(config, findings);
  check_interleaving(config, findings);
}

std::vector<std::string> warnings_of(const Config& config) {
  std::vector<std::string> warnings;
  const grid::Layout layout = layout_of(config);
  const std::int64_t dp = layout.world / (layout.tp * layout.cp * layout.pp);
  if (config.comm_overlap.overlap_moe_expert_parallel_comm &&
      micro_batches(config.train, dp) == 1) {
    warnings.push_back(
        "comm_overlap.overlap_moe_expert_parallel_comm: a step has one micro-batch, so nothing can "
        "overlap: it runs the forward of one micro-batch beside the backward of another; raise "
        "train.global_batch_size");
  }
  const ModelConfig& model = config.model;
  const auto idle = [&](bool is_set, const char* key, const char* why) {
    if (is_set) warnings.push_back(base::text("{} has no effect: {}", key, why));
  };
  idle(model.microbatch_group_size_per_vp_stage && virtual_stages(model) == 1,
       "model.microbatch_group_size_per_vp_stage",
       "model.virtual_pipeline_model_parallel_size = 1 interleaves nothing");
  const bool p2p = config.comm_overlap.overlap_p2p_comm.value_or(false) ||
                   config.comm_overlap.batch_p2p_comm.value_or(false);
  idle(p2p && model.pipeline_model_parallel_size == 1,
       "comm_overlap.overlap_p2p_comm (or batch_p2p_comm)",
       "model.pipeline_model_parallel_size = 1 has no neighbours");
  idle(model.overlap_dispatch_backward_with_experts_wgrad && model.expert_model_parallel_size == 1,
       "model.overlap_dispatch_backward_with_experts_wgrad",
       "model.expert_model_parallel_size = 1 sends no tokens");
  idle(config.fabric.seed != 0 && config.fabric.jitter_us == 0,
       "fabric.seed",
       "fabric.jitter_us = 0 draws nothing at random");
  return warnings;
}

}  // namespace weft::config
