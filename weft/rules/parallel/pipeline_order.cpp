// Pipeline schedules: runtime.pipeline_schedule.
#include <algorithm>

#include "weft/derive/pipeline.h"
#include "weft/rules/judge.h"
#include "weft/rules/topics.h"

namespace weft::rules {

using namespace config;
namespace {

using base::text;

constexpr std::string_view kKey = "runtime.pipeline_schedule";
constexpr std::string_view kChunks = "model.virtual_pipeline_model_parallel_size";

PipelineSchedule asked(const Judge& judge) { return judge.config().runtime.pipeline_schedule; }

// True if weight gradients fill the time in which a rank would wait for a message.
bool puts_weights_off(const Judge& judge) {
  return asked(judge) == PipelineSchedule::ZeroBubble ||
         asked(judge) == PipelineSchedule::DualPipeV;
}

void judge_two_chunks(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (asked(judge) != PipelineSchedule::DualPipeV || model.pipeline_model_parallel_size == 1)
    return;
  if (model.virtual_pipeline_model_parallel_size) return;
  judge.set(kChunks, "2", "runtime.pipeline_schedule = dualpipev has two stages on every rank");
}

void judge_no_pipeline(Judge& judge) {
  if (asked(judge) == PipelineSchedule::Auto) return;
  if (judge.model().pipeline_model_parallel_size != 1) return;
  judge.report(kKey,
               text("{} = {} orders the turns of a pipeline, and "
                    "model.pipeline_model_parallel_size = 1 is none",
                    kKey,
                    word(asked(judge))),
               "raise the latter, or leave the former at auto");
}

// Chunks that the schedule needs, as text; empty: it fits.
std::string wanted_chunks(PipelineSchedule schedule, std::int64_t vpp) {
  switch (schedule) {
    case PipelineSchedule::Auto:
      return "";
    case PipelineSchedule::OneForwardOneBackward:
    case PipelineSchedule::ZeroBubble:
      return vpp == 1 ? "" : "one";
    case PipelineSchedule::Interleaved:
      return vpp > 1 ? "" : "two or more";
    case PipelineSchedule::DualPipeV:
      return vpp == 2 ? "" : "two";
  }
  return "";
}

void judge_pipeline_chunks(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (model.pipeline_model_parallel_size == 1 || !judge.sound({kChunks})) return;
  const std::int64_t vpp = derive::virtual_stages(model);
  const std::string wanted = wanted_chunks(asked(judge), vpp);
  if (wanted.empty()) return;
  judge.report(kKey,
               text("{} = {} is an order of {} of a rank's chunks of layers, and {} = {}",
                    kKey,
                    word(asked(judge)),
                    wanted,
                    kChunks,
                    vpp),
               text("use {}={}, or another schedule", kChunks, wanted == "one" ? 1 : 2));
}

void judge_side_by_side(Judge& judge) {
  if (asked(judge) != PipelineSchedule::ZeroBubble) return;
  if (!judge.overlap().overlap_moe_expert_parallel_comm) return;
  judge.report(kKey,
               text("{} = zb_h1 takes one forward or one backward at a time, and "
                    "comm_overlap.overlap_moe_expert_parallel_comm runs them side by side",
                    kKey),
               "use dualpipev or interleaved, or no overlap of expert-parallel communication");
}

void judge_first_and_last(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (asked(judge) != PipelineSchedule::DualPipeV) return;
  if (!model.num_layers_in_first_pipeline_stage && !model.num_layers_in_last_pipeline_stage) return;
  judge.report(kKey,
               text("{} = dualpipev has the first and the last stage on rank 0, and "
                    "model.num_layers_in_first/last_pipeline_stage count the layers of ranks",
                    kKey),
               "say in model.pipeline_model_parallel_layout which stage holds what");
}

void judge_turn(Judge& judge) {
  const ModelConfig& model = judge.model();
  const std::int64_t pp = model.pipeline_model_parallel_size;
  if (asked(judge) != PipelineSchedule::DualPipeV || pp < 2) return;
  if (!judge.sound({"model.num_layers", "model.pipeline_model_parallel_size", kChunks})) return;
  const derive::Stages stages = derive::stages_of(model);
  if (std::ssize(stages.all) != 2 * pp) return;
  const auto layers = [&](std::int64_t stage) {
    return stages.all[static_cast<std::size_t>(stage)].layers;
  };
  if (layers(pp - 1) > 0 && layers(pp) > 0) return;
  judge.report("model.pipeline_model_parallel_layout",
               text("{} = dualpipev turns at the last rank, whose stages {} and {} have {} and {} "
                    "layers",
                    kKey,
                    pp - 1,
                    pp,
                    layers(pp - 1),
                    layers(pp)),
               "give each of the two a layer (t)");
}

void judge_open_exchange(Judge& judge) {
  if (!puts_weights_off(judge) || judge.model().pipeline_model_parallel_size == 1) return;
  const std::string why =
      text("{} = {} has weight gradients to do while a message travels", kKey, word(asked(judge)));
  if (!judge.overlap().overlap_p2p_comm) judge.set("comm_overlap.overlap_p2p_comm", "true", why);
  if (!judge.overlap().batch_p2p_comm) judge.set("comm_overlap.batch_p2p_comm", "false", why);
}

void judge_batched_exchange(Judge& judge) {
  if (!puts_weights_off(judge) || judge.model().pipeline_model_parallel_size == 1) return;
  const CommOverlapConfig& overlap = judge.overlap();
  if (overlap.overlap_p2p_comm.value_or(true) && !overlap.batch_p2p_comm.value_or(false)) return;
  judge.report(kKey,
               text("{} = {} fills the time in which messages travel, and neighbours that exchange "
                    "at fixed points (comm_overlap.overlap_p2p_comm = false or batch_p2p_comm = "
                    "true) wait for them",
                    kKey,
                    word(asked(judge))),
               "leave both keys out");
}

void judge_deferred_head(Judge& judge) {
  if (asked(judge) != PipelineSchedule::DualPipeV) return;
  if (!judge.overlap().defer_embedding_wgrad_compute.value_or(false)) return;
  judge.report("comm_overlap.defer_embedding_wgrad_compute",
               text("comm_overlap.defer_embedding_wgrad_compute fills the time in which the stages "
                    "before the head's drain, and {} = dualpipev has the head on rank 0, which is "
                    "busy to the end",
                    kKey),
               "leave it out, or use another schedule");
}

void judge_kept_for_weights(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (!puts_weights_off(judge) || model.pipeline_model_parallel_size == 1) return;
  const bool all = model.recompute_granularity == RecomputeGranularity::Full;
  const bool selected = model.recompute_granularity == RecomputeGranularity::Selective;
  const auto recomputes = [&](RecomputeModule module) {
    return selected && model.recompute_modules &&
           std::ranges::find(*model.recompute_modules, module) != model.recompute_modules->end();
  };
  const bool whole_pieces = recomputes(RecomputeModule::Moe) || recomputes(RecomputeModule::Mlp);
  if (!all && !whole_pieces) return;
  judge.report(
      "model.recompute_granularity",
      text("{} with {} = {}: what a backward makes again is kept until its weight "
           "gradients run, so that little memory is saved",
           all ? "model.recompute_granularity = full" : "moe or mlp among model.recompute_modules",
           kKey,
           word(asked(judge))),
      "recompute parts alone (model.recompute_modules=[core_attn,moe_act,layernorm]), or "
      "use 1f1b or interleaved; weft memory shows what each needs");
}

constexpr Rule kPipelineOrderRules[] = {
    {.id = "W80",
     .kind = Kind::Automatic,
     .when = "runtime.pipeline_schedule = dualpipev and vpp is null",
     .then = "model.virtual_pipeline_model_parallel_size := 2",
     .why = "Rank r holds stages r and 2 pp - 1 - r.",
     .example = "model.num_layers=4 model.pipeline_model_parallel_size=2 "
                "runtime.pipeline_schedule=dualpipev train.global_batch_size=4",
     .judge = judge_two_chunks},
    {.id = "W81",
     .when = "runtime.pipeline_schedule other than auto with pp = 1",
     .then = "refused",
     .why = "There are no stages whose turns could be ordered.",
     .example = "runtime.pipeline_schedule=zb_h1",
     .judge = judge_no_pipeline},
    {.id = "W82",
     .when = "runtime.pipeline_schedule = 1f1b or zb_h1 with vpp > 1, interleaved with vpp = 1, "
             "dualpipev with another vpp than 2",
     .then = "refused",
     .why = "An order of turns is one of so many chunks a rank.",
     .example = "model.num_layers=4 model.pipeline_model_parallel_size=2 "
                "model.virtual_pipeline_model_parallel_size=2 runtime.pipeline_schedule=zb_h1 "
                "train.global_batch_size=4",
     .judge = judge_pipeline_chunks},
    {.id = "W83",
     .when = "runtime.pipeline_schedule = zb_h1 with overlapped expert-parallel communication",
     .then = "refused",
     .why = "Its forwards and backwards run one at a time; those of dualpipev run side by side.",
     .example = "model.num_layers=4 model.num_moe_experts=8 model.expert_model_parallel_size=2 "
                "model.pipeline_model_parallel_size=2 "
                "model.virtual_pipeline_model_parallel_size=1 "
                "comm_overlap.overlap_moe_expert_parallel_comm=true "
                "runtime.pipeline_schedule=zb_h1 train.global_batch_size=4",
     .judge = judge_side_by_side},
    {.id = "W84",
     .when = "runtime.pipeline_schedule = dualpipev with layers of the first or last stage",
     .then = "refused",
     .why = "The first and the last stage are on one rank; a layout says what each holds.",
     .example = "model.num_layers=8 model.pipeline_model_parallel_size=2 "
                "model.num_layers_in_first_pipeline_stage=2 "
                "runtime.pipeline_schedule=dualpipev train.global_batch_size=4",
     .judge = judge_first_and_last},
    {.id = "W85",
     .when = "runtime.pipeline_schedule = dualpipev and a stage of the last rank without layers",
     .then = "refused",
     .why = "There the one stage hands its output over to the other in memory, layer to layer.",
     .example = "model.num_layers=3 model.pipeline_model_parallel_size=2 "
                "model.pipeline_model_parallel_layout=Et||t|tL "
                "runtime.pipeline_schedule=dualpipev train.global_batch_size=4",
     .judge = judge_turn},
    {.id = "W86",
     .kind = Kind::Automatic,
     .when = "runtime.pipeline_schedule = zb_h1 or dualpipev, and the exchange is left open",
     .then = "comm_overlap.overlap_p2p_comm := true, batch_p2p_comm := false",
     .why = "Weight gradients are there to be done while a message travels.",
     .example = "model.pipeline_model_parallel_size=2 runtime.pipeline_schedule=zb_h1 "
                "train.global_batch_size=2",
     .judge = judge_open_exchange},
    {.id = "W87",
     .when = "runtime.pipeline_schedule = zb_h1 or dualpipev with an exchange at fixed points",
     .then = "refused",
     .why = "Its turns are not of one length: ranks that wait for one another lose what they gain.",
     .example = "model.pipeline_model_parallel_size=2 runtime.pipeline_schedule=zb_h1 "
                "comm_overlap.overlap_p2p_comm=false comm_overlap.batch_p2p_comm=true "
                "train.global_batch_size=2",
     .judge = judge_batched_exchange},
    {.id = "W88",
     .when =
         "runtime.pipeline_schedule = dualpipev with comm_overlap.defer_embedding_wgrad_compute",
     .then = "refused",
     .why = "The head's rank is the first, and it is the last to be done.",
     .example = "model.num_layers=4 model.pipeline_model_parallel_size=2 "
                "runtime.pipeline_schedule=dualpipev "
                "comm_overlap.defer_embedding_wgrad_compute=true train.global_batch_size=4",
     .judge = judge_deferred_head},
    {.id = "W130",
     .kind = Kind::Warning,
     .when = "runtime.pipeline_schedule = zb_h1 or dualpipev with full recomputation, or that of "
             "moe or mlp",
     .then = "warned",
     .why = "Weight gradients that wait keep what was made again for them: several micro-batches' "
            "activations instead of one's.",
     .example = "model.pipeline_model_parallel_size=2 runtime.pipeline_schedule=zb_h1 "
                "model.recompute_granularity=full model.recompute_method=uniform "
                "model.recompute_num_layers=1 train.global_batch_size=2",
     .judge = judge_kept_for_weights},
};

}  // namespace

std::span<const Rule> pipeline_order_rules() { return kPipelineOrderRules; }

}  // namespace weft::rules
