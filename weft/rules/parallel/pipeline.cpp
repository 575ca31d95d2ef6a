// Stages, virtual pipelines and the exchange between pipeline neighbours.
#include "weft/derive/pipeline.h"

#include <algorithm>

#include "weft/derive/derived.h"
#include "weft/rules/judge.h"
#include "weft/rules/topics.h"

namespace weft::rules {

using namespace config;
namespace {

using base::text;

bool stages_are_sound(const Judge& judge) {
  return judge.sound({"model.num_layers",
                      "model.pipeline_model_parallel_size",
                      "model.virtual_pipeline_model_parallel_size",
                      "model.num_layers_in_first_pipeline_stage",
                      "model.num_layers_in_last_pipeline_stage",
                      "model.mtp_num_layers"});
}

void judge_layout_alone(Judge& judge) {
  const ModelConfig& model = judge.model();
  const bool counts =
      model.num_layers_in_first_pipeline_stage || model.num_layers_in_last_pipeline_stage ||
      model.account_for_embedding_in_pipeline_split || model.account_for_loss_in_pipeline_split;
  if (model.pipeline_model_parallel_layout.empty() || !counts) return;
  judge.report("model.pipeline_model_parallel_layout",
               "model.pipeline_model_parallel_layout says what every stage holds, and "
               "model.num_layers_in_first/last_pipeline_stage or account_for_* say it again",
               "use one of both");
}

void judge_virtual_stages_of_layout(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (model.virtual_pipeline_model_parallel_size || !stages_are_sound(judge)) return;
  if (model.pipeline_model_parallel_layout.empty()) return;
  const std::optional<std::int64_t> stages = derive::stages_in_layout(model);
  const std::int64_t pp = model.pipeline_model_parallel_size;
  if (!stages || *stages % pp != 0 || *stages == pp) return;
  judge.set("model.virtual_pipeline_model_parallel_size",
            text("{}", *stages / pp),
            text("model.pipeline_model_parallel_layout has {} stages for pp = {}", *stages, pp));
}

void judge_virtual_without_pipeline(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (derive::virtual_stages(model) <= 1 || model.pipeline_model_parallel_size != 1) return;
  judge.report(
      "model.virtual_pipeline_model_parallel_size",
      text(
          "model.virtual_pipeline_model_parallel_size = {} takes the chunks of a pipeline in turn, "
          "and model.pipeline_model_parallel_size = 1 is none",
          derive::virtual_stages(model)),
      "raise it, or unset the former");
}

void judge_stage_counts(Judge& judge) {
  const ModelConfig& model = judge.model();
  const std::int64_t vpp = derive::virtual_stages(model);
  if (!stages_are_sound(judge)) return;
  const auto check = [&](const char* key, std::optional<std::int64_t> layers) {
    if (!layers || (*layers > 0 && *layers % vpp == 0)) return;
    judge.report(key,
                 text("{} = {} with {} chunks a rank", key, *layers, vpp),
                 text("use a multiple of {} above 0", vpp));
  };
  check("model.num_layers_in_first_pipeline_stage", model.num_layers_in_first_pipeline_stage);
  check("model.num_layers_in_last_pipeline_stage", model.num_layers_in_last_pipeline_stage);
}

bool has_bad_counts(const ModelConfig& model) {
  const auto bad = [&](std::optional<std::int64_t> layers) {
    return layers && (*layers <= 0 || *layers % derive::virtual_stages(model) != 0);
  };
  return bad(model.num_layers_in_first_pipeline_stage) ||
         bad(model.num_layers_in_last_pipeline_stage);
}

// Reports the complaints of the stages.
void report_stages(Judge& judge, std::string_view key) {
  const ModelConfig& model = judge.model();
  if (!stages_are_sound(judge) || has_bad_counts(model)) return;
  if (derive::virtual_stages(model) > 1 && model.pipeline_model_parallel_size == 1) return;
  for (const std::string& complaint : derive::stages_of(model).complaints) {
    const std::size_t colon = complaint.rfind(": ");
    judge.report(key,
                 complaint.substr(0, colon),
                 colon == std::string::npos ? "" : complaint.substr(colon + 2));
  }
}

bool has_counts(const ModelConfig& model) {
  return model.num_layers_in_first_pipeline_stage || model.num_layers_in_last_pipeline_stage;
}

void judge_layout_text(Judge& judge) {
  if (judge.model().pipeline_model_parallel_layout.empty()) return;
  report_stages(judge, "model.pipeline_model_parallel_layout");
}

void judge_middle_stages(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (!model.pipeline_model_parallel_layout.empty() || !has_counts(model)) return;
  report_stages(judge, "model.num_layers");
}

void judge_equal_stages(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (!model.pipeline_model_parallel_layout.empty() || has_counts(model)) return;
  report_stages(judge, "model.num_layers");
}

bool is_interleaved(const Judge& judge) {
  return derive::pipeline_schedule(judge.config()) == PipelineSchedule::Interleaved;
}

// Rules of a virtual pipeline on a rank's micro-batches.
void judge_chunk_groups(Judge& judge) {
  const ModelConfig& model = judge.model();
  const std::optional<std::int64_t> batches = judge.micro_batches();
  if (!is_interleaved(judge) || !batches) return;
  const std::int64_t pp = model.pipeline_model_parallel_size,
                     group = derive::micro_batch_group(model);
  if (pp == 1) return;
  if (group < pp || group > *batches) {
    judge.report("model.microbatch_group_size_per_vp_stage",
                 text("model.microbatch_group_size_per_vp_stage = {}: a virtual pipeline takes so "
                      "many micro-batches in a row; it needs at least pp = {}, and a step has {} "
                      "(train.global_batch_size = {} / (train.micro_batch_size = {} * dp))",
                      group,
                      pp,
                      *batches,
                      judge.config().train.global_batch_size,
                      judge.config().train.micro_batch_size),
                 *batches < pp ? text("use train.global_batch_size={} or more",
                                      judge.config().train.global_batch_size / *batches * pp)
                               : text("use a number from {} to {}", pp, *batches));
    return;
  }
  const std::int64_t rest = *batches % group;
  if (rest == 0 || rest >= pp) return;
  judge.report(
      "model.microbatch_group_size_per_vp_stage",
      text("{} micro-batches leave a last group of {} by "
           "model.microbatch_group_size_per_vp_stage = {}, fewer than pp = {}",
           *batches,
           rest,
           group,
           pp),
      text("use a multiple of {} micro-batches (train.global_batch_size), or another group "
           "size",
           group));
}

void judge_group_size(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (model.microbatch_group_size_per_vp_stage || !is_interleaved(judge)) return;
  if (!stages_are_sound(judge)) return;
  judge.set("model.microbatch_group_size_per_vp_stage",
            text("{}", model.pipeline_model_parallel_size),
            "a chunk takes pp micro-batches before the next chunk's turn");
}

void set_exchange(Judge& judge, bool overlap, bool batch, const std::string& why) {
  const auto word_of = [](bool on) { return on ? "true" : "false"; };
  if (!judge.overlap().overlap_p2p_comm) {
    judge.set("comm_overlap.overlap_p2p_comm", word_of(overlap), why);
  }
  if (!judge.overlap().batch_p2p_comm) {
    judge.set("comm_overlap.batch_p2p_comm", word_of(batch), why);
  }
}

void judge_virtual_exchange(Judge& judge) {
  const std::int64_t pp = judge.model().pipeline_model_parallel_size;
  const std::int64_t vpp = derive::virtual_stages(judge.model());
  if (pp <= 1 || !is_interleaved(judge)) return;
  set_exchange(
      judge,
      true,
      false,
      text("with pp = {} and vpp = {}, chunks leave room to exchange under compute", pp, vpp));
}

void judge_plain_exchange(Judge& judge) {
  const std::int64_t pp = judge.model().pipeline_model_parallel_size;
  const PipelineSchedule schedule = derive::pipeline_schedule(judge.config());
  if (pp <= 1 || schedule != PipelineSchedule::OneForwardOneBackward) return;
  set_exchange(judge,
               false,
               true,
               text("with pp = {} and one chunk a rank, neighbours exchange at fixed points", pp));
}

void judge_no_exchange(Judge& judge) {
  if (judge.model().pipeline_model_parallel_size != 1) return;
  set_exchange(judge, false, false, "with pp = 1 there are no neighbours");
}

void judge_one_exchange(Judge& judge) {
  const CommOverlapConfig& overlap = judge.overlap();
  if (!overlap.overlap_p2p_comm.value_or(false) || !overlap.batch_p2p_comm.value_or(false)) return;
  judge.report(
      "comm_overlap.batch_p2p_comm",
      "comm_overlap.overlap_p2p_comm and comm_overlap.batch_p2p_comm (which pp > 1 with one "
      "chunk a rank sets where it is left open) exclude each other",
      "set one of them to false");
}

void judge_warmup_flush(Judge& judge) {
  const CommOverlapConfig& overlap = judge.overlap();
  if (!judge.model().overlap_p2p_comm_warmup_flush) return;
  if (judge.model().pipeline_model_parallel_size == 1) return;  // W20 reports that it has no effect
  if (overlap.overlap_p2p_comm.value_or(false) && !overlap.batch_p2p_comm.value_or(false)) return;
  judge.report("model.overlap_p2p_comm_warmup_flush",
               "model.overlap_p2p_comm_warmup_flush overlaps the exchange while the pipeline fills "
               "and drains, and the exchange is not overlapped",
               "set comm_overlap.overlap_p2p_comm=true and comm_overlap.batch_p2p_comm=false");
}

void judge_deferred_embedding(Judge& judge) {
  const CommOverlapConfig& overlap = judge.overlap();
  if (!overlap.defer_embedding_wgrad_compute.value_or(false)) return;
  if (judge.model().pipeline_model_parallel_size > 1) return;
  judge.report(
      "comm_overlap.defer_embedding_wgrad_compute",
      "comm_overlap.defer_embedding_wgrad_compute fills the time in which a pipeline drains, "
      "and model.pipeline_model_parallel_size = 1 is none",
      "raise it, or leave the former out");
}

void judge_deferred_fusion(Judge& judge) {
  const CommOverlapConfig& overlap = judge.overlap();
  if (!overlap.defer_embedding_wgrad_compute.value_or(false)) return;
  if (judge.model().gradient_accumulation_fusion) return;
  judge.report("model.gradient_accumulation_fusion",
               "comm_overlap.defer_embedding_wgrad_compute adds to gradients late, which needs "
               "model.gradient_accumulation_fusion",
               "set model.gradient_accumulation_fusion=true");
}

void judge_deferral_default(Judge& judge) {
  const CommOverlapConfig& overlap = judge.overlap();
  if (!overlap.defer_embedding_wgrad_compute.value_or(false) || overlap.wgrad_deferral_limit)
    return;
  judge.set("comm_overlap.wgrad_deferral_limit",
            "0",
            "without a limit the weight gradients of all micro-batches may wait");
}

void judge_deferral_limit(Judge& judge) {
  const CommOverlapConfig& overlap = judge.overlap();
  if (!overlap.defer_embedding_wgrad_compute.value_or(false)) return;
  if (overlap.wgrad_deferral_limit.value_or(0) >= 0) return;
  judge.report("comm_overlap.wgrad_deferral_limit",
               text("comm_overlap.wgrad_deferral_limit = {}", *overlap.wgrad_deferral_limit),
               "use a number of micro-batches, or 0 for all");
}

constexpr Rule kPipelineRules[] = {
    {.id = "TC-110",
     .when = "a pipeline layout beside counts of the first or last stage or account_for_*",
     .then = "refused",
     .why = "The layout already says what every stage holds.",
     .example = "model.pipeline_model_parallel_size=2 model.pipeline_model_parallel_layout=Et|tL "
                "model.account_for_loss_in_pipeline_split=true",
     .judge = judge_layout_alone},
    {.id = "TC-111",
     .kind = Kind::Automatic,
     .when = "a pipeline layout of more stages than pp, and vpp is null",
     .then = "model.virtual_pipeline_model_parallel_size := stages / pp",
     .why = "A layout with n * pp stages gives every rank n chunks.",
     .example = "model.num_layers=4 model.pipeline_model_parallel_size=2 "
                "model.pipeline_model_parallel_layout=Et|t|t|tL train.global_batch_size=2",
     .judge = judge_virtual_stages_of_layout},
    {.id = "W9",
     .when = "model.virtual_pipeline_model_parallel_size > 1 with pp = 1",
     .then = "refused",
     .why = "The chunks of a virtual pipeline take turns across several ranks.",
     .example = "model.virtual_pipeline_model_parallel_size=2",
     .judge = judge_virtual_without_pipeline},
    {.id = "TC-112",
     .when = "layers of the first or last stage at 0, or no multiple of vpp",
     .then = "refused",
     .why = "A rank's layers are spread evenly over its chunks.",
     .example = "model.num_layers=8 model.pipeline_model_parallel_size=2 "
                "model.num_layers_in_first_pipeline_stage=0",
     .judge = judge_stage_counts},
    {.id = "TC-111a",
     .when = "a pipeline layout that does not hold what the model has, or whose stages are not pp "
             "* vpp",
     .then = "refused",
     .why = "A layout names every layer once, the embedding first and the loss last, in pp * vpp "
            "stages.",
     .example = "model.num_layers=3 model.pipeline_model_parallel_size=2 "
                "model.virtual_pipeline_model_parallel_size=1 "
                "model.pipeline_model_parallel_layout=Et|tL",
     .judge = judge_layout_text},
    {.id = "TC-112a",
     .when = "layers between the first and the last stage do not divide by the ranks between, or "
             "by vpp",
     .then = "refused",
     .why = "The stages without a count of their own are equal.",
     .example = "model.num_layers=10 model.pipeline_model_parallel_size=4 "
                "model.num_layers_in_first_pipeline_stage=1 "
                "model.num_layers_in_last_pipeline_stage=2",
     .judge = judge_middle_stages},
    {.id = "B8",
     .when = "layers, with what counts as one, do not divide by pp * vpp",
     .then = "refused",
     .why =
         "Without a layout the stages are equal. account_for_embedding and account_for_loss make "
         "embedding and loss count as a layer.",
     .example = "model.num_layers=3 model.pipeline_model_parallel_size=2",
     .also = "TC-113",
     .judge = judge_equal_stages},
    {.id = "MP-8",
     .kind = Kind::Automatic,
     .when = "vpp > 1 and model.microbatch_group_size_per_vp_stage is null",
     .then = "model.microbatch_group_size_per_vp_stage := pp",
     .why = "The shortest group that keeps every stage of a pipeline busy.",
     .example = "model.num_layers=4 model.pipeline_model_parallel_size=2 "
                "model.virtual_pipeline_model_parallel_size=2 train.global_batch_size=2",
     .judge = judge_group_size},
    {.id = "TC-114",
     .when = "in a virtual pipeline, a group of micro-batches below pp or above those of a step, "
             "or a last group below pp",
     .then = "refused",
     .why = "A stage that gets fewer micro-batches in a row than the pipeline is long waits for "
            "itself.",
     .example = "model.num_layers=4 model.pipeline_model_parallel_size=2 "
                "model.virtual_pipeline_model_parallel_size=2 train.global_batch_size=3",
     .judge = judge_chunk_groups},
    {.id = "C10",
     .kind = Kind::Automatic,
     .when = "pp > 1 and vpp > 1, and the exchange is left open",
     .then = "comm_overlap.overlap_p2p_comm := true, batch_p2p_comm := false",
     .why =
         "With several chunks a rank has other work while a message travels. What the user says, "
         "false included, is kept (C2, C3).",
     .example = "model.num_layers=4 model.pipeline_model_parallel_size=2 "
                "model.virtual_pipeline_model_parallel_size=2 train.global_batch_size=2",
     .also = "C2 C3",
     .judge = judge_virtual_exchange},
    {.id = "C11",
     .kind = Kind::Automatic,
     .when = "pp > 1 and vpp null or 1, and the exchange is left open",
     .then = "comm_overlap.overlap_p2p_comm := false, batch_p2p_comm := true",
     .why = "A plain 1F1B rank has nothing to do until its neighbour's message is there.",
     .example = "model.pipeline_model_parallel_size=2",
     .judge = judge_plain_exchange},
    {.id = "C12",
     .kind = Kind::Automatic,
     .when = "pp = 1 and the exchange is left open",
     .then = "comm_overlap.overlap_p2p_comm := false, batch_p2p_comm := false",
     .why = "There are no neighbours.",
     .example = "model.num_layers=2",
     .judge = judge_no_exchange},
    {.id = "TC-115",
     .when = "comm_overlap.overlap_p2p_comm and batch_p2p_comm both true",
     .then = "refused",
     .why = "Batched exchange waits at fixed points; overlapped exchange does not.",
     .example = "model.pipeline_model_parallel_size=2 comm_overlap.overlap_p2p_comm=true "
                "comm_overlap.batch_p2p_comm=true",
     .judge = judge_one_exchange},
    {.id = "MP-9",
     .when = "model.overlap_p2p_comm_warmup_flush without overlapped exchange",
     .then = "refused",
     .why = "It widens an overlap that is not there.",
     .example = "model.pipeline_model_parallel_size=2 model.overlap_p2p_comm_warmup_flush=true",
     .judge = judge_warmup_flush},
    {.id = "MP-4",
     .when = "comm_overlap.defer_embedding_wgrad_compute with pp = 1",
     .then = "refused",
     .why = "It fills the time in which a pipeline drains.",
     .example = "comm_overlap.defer_embedding_wgrad_compute=true",
     .judge = judge_deferred_embedding},
    {.id = "MP-5",
     .when =
         "comm_overlap.defer_embedding_wgrad_compute without model.gradient_accumulation_fusion",
     .then = "refused",
     .why = "Deferred gradients add to a buffer that others have used since.",
     .example = "model.pipeline_model_parallel_size=2 "
                "comm_overlap.defer_embedding_wgrad_compute=true "
                "model.gradient_accumulation_fusion=false",
     .judge = judge_deferred_fusion},
    {.id = "C39",
     .kind = Kind::Automatic,
     .when = "comm_overlap.defer_embedding_wgrad_compute and no limit",
     .then = "comm_overlap.wgrad_deferral_limit := 0 (all)",
     .why = "The Bridge hands on -1, which Megatron-Core always refuses; here no limit means none.",
     .example = "model.pipeline_model_parallel_size=2 "
                "comm_overlap.defer_embedding_wgrad_compute=true",
     .judge = judge_deferral_default},
    {.id = "MP-6",
     .when = "comm_overlap.wgrad_deferral_limit below 0",
     .then = "refused",
     .why = "It is a number of micro-batches; 0 stands for all.",
     .example = "model.pipeline_model_parallel_size=2 "
                "comm_overlap.defer_embedding_wgrad_compute=true "
                "comm_overlap.wgrad_deferral_limit=-1",
     .judge = judge_deferral_limit},
};

}  // namespace

std::span<const Rule> pipeline_rules() { return kPipelineRules; }

}  // namespace weft::rules
