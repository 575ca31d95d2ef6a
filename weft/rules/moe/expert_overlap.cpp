// Requirements of expert-parallel overlap: the forward of one micro-batch beside the backward of
// another.
#include "weft/rules/chosen.h"
#include "weft/rules/judge.h"
#include "weft/rules/topics.h"

namespace weft::rules {

using namespace config;
namespace {

using base::text;

bool in_fp32(const ModelConfig& model) {
  return !model.bf16 && !model.fp16 && model.params_dtype == base::DType::F32;
}

bool has_experts(const Judge& judge) { return judge.model().experts() > 1; }

// Without experts, C15 reports it.
void judge_ranks(Judge& judge) {
  const std::int64_t ep = judge.model().expert_model_parallel_size;
  if (!overlaps(judge) || ep > 1 || !has_experts(judge)) return;
  judge.report("model.expert_model_parallel_size",
               text("{} hides the messages between expert-parallel ranks, and "
                    "model.expert_model_parallel_size = {} has none",
                    kOverlap,
                    ep),
               "raise it, or leave the overlap out");
}

void judge_experts(Judge& judge) {
  const std::optional<std::int64_t> experts = judge.model().num_moe_experts;
  if (!overlaps(judge) || has_experts(judge)) return;
  judge.report("model.num_moe_experts",
               text("{} needs more than one expert, on more than one rank, and "
                    "model.num_moe_experts = {}, model.expert_model_parallel_size = {}",
                    kOverlap,
                    experts ? text("{}", *experts) : "null",
                    judge.model().expert_model_parallel_size),
               "set model.num_moe_experts, or leave the overlap out");
}

void judge_dispatcher(Judge& judge) {
  const Dispatcher dispatcher = judge.model().moe_token_dispatcher_type;
  if (!overlaps(judge)) return;
  if (dispatcher == Dispatcher::AllToAll || dispatcher == Dispatcher::Flex) return;
  if (dispatcher == Dispatcher::AllGather && !judge.on_gpu()) return;
  judge.report("model.moe_token_dispatcher_type",
               text("{} needs a dispatcher whose messages travel apart from its local work, and "
                    "model.moe_token_dispatcher_type = {} is not one",
                    kOverlap,
                    word(dispatcher)),
               "use alltoall or flex");
}

// True if shared experts run while rows are in flight.
bool overlaps_shared_experts(const ModelConfig& model) {
  return model.moe_shared_expert_overlap && model.moe_shared_expert_intermediate_size &&
         model.tokens_travel();
}

void judge_dispatcher_on_cpu(Judge& judge) {
  if (judge.on_gpu() || judge.model().moe_token_dispatcher_type != Dispatcher::AllGather) return;
  const auto say = [&](const char* key) {
    judge.report(key,
                 text("{} runs with model.moe_token_dispatcher_type = allgather, as CPU ranks may; "
                      "on GPUs it needs alltoall or flex",
                      key),
                 "use alltoall or flex for a config that is to run on GPUs");
  };
  if (overlaps(judge)) say(kOverlap);
  if (overlaps_shared_experts(judge.model())) say("model.moe_shared_expert_overlap");
}

void judge_precision(Judge& judge) {
  if (!overlaps(judge) || !judge.on_gpu() || !in_fp32(judge.model())) return;
  judge.report("model.bf16",
               text("{} on GPUs needs model.bf16 or model.fp16, and the run is in fp32", kOverlap),
               "set model.bf16=true (fp8 and fp4 products run on top of it)");
}

void judge_precision_on_cpu(Judge& judge) {
  if (!overlaps(judge) || judge.on_gpu() || !in_fp32(judge.model())) return;
  judge.report(kOverlap,
               text("{} runs in fp32, as CPU ranks may; on GPUs it needs model.bf16 or model.fp16",
                    kOverlap),
               "");
}

void judge_chunks(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (!overlaps(judge) || model.pipeline_model_parallel_size <= 1) return;
  if (model.virtual_pipeline_model_parallel_size) return;
  judge.report("model.virtual_pipeline_model_parallel_size",
               text("{} with model.pipeline_model_parallel_size = {} needs "
                    "model.virtual_pipeline_model_parallel_size set",
                    kOverlap,
                    model.pipeline_model_parallel_size),
               "use 2 or more chunks, or 1 for a plain pipeline");
}

void judge_mtp(Judge& judge) {
  const std::int64_t layers = judge.model().mtp_num_layers.value_or(0);
  if (!overlaps(judge) || layers == 0 || layers == 1) return;
  judge.answer_for("model.mtp_num_layers",
                   text("{} takes at most one layer of multi-token prediction, and "
                        "model.mtp_num_layers = {}",
                        kOverlap,
                        layers),
                   "use 1, or leave it out");
}

void judge_early_release(Judge& judge) {
  if (overlaps(judge) || !judge.model().ep_overlap_early_attn_memory_release) return;
  judge.report("model.ep_overlap_early_attn_memory_release",
               text("model.ep_overlap_early_attn_memory_release changes the overlapped order, and "
                    "{} = false",
                    kOverlap),
               text("set {}=true, or leave it out", kOverlap));
}

// Overrides that make the overlap legal on CPU ranks; two micro-batches per step.
#define WEFT_OVERLAPPED                                         \
  "model.num_moe_experts=4 model.expert_model_parallel_size=2 " \
  "train.global_batch_size=4 "                                  \
  "comm_overlap.overlap_moe_expert_parallel_comm=true "

constexpr Rule kExpertOverlapRules[] = {
    {.id = "C14",
     .when = "expert-parallel overlap with ep = 1",
     .then = "refused",
     .why = "With ep = 1 a rank holds all experts and no token travels, so that there is nothing "
            "to hide. comm_overlap.overlap_moe_expert_parallel_comm switches the overlap; the key "
            "of the same name on the model means this one (C4).",
     .example = "model.num_moe_experts=4 comm_overlap.overlap_moe_expert_parallel_comm=true",
     .also = "TC-62 C4 C13 C38",
     .judge = judge_ranks},
    {.id = "W112",
     .kind = Kind::Automatic,
     .when = "expert-parallel overlap = auto where it could not run",
     .then = "comm_overlap.overlap_moe_expert_parallel_comm = false",
     .why = "A run that may choose takes its first steps in every order, and those orders must be "
            "ones that it may have.",
     .example = "model.num_moe_experts=4 comm_overlap.overlap_moe_expert_parallel_comm=auto",
     .judge = nullptr},
    {.id = "C15",
     .when = "expert-parallel overlap with model.num_moe_experts at null or 1",
     .then = "refused",
     .why = "A layer without experts dispatches nothing. Megatron crashes on null, and its "
            "core does not look (TC-74).",
     .example = "comm_overlap.overlap_moe_expert_parallel_comm=true",
     .also = "TC-74",
     .judge = judge_experts},
    {.id = "C16",
     .when =
         "expert-parallel overlap with a dispatcher other than alltoall and flex (on CPU ranks, "
         "allgather)",
     .then = "refused",
     .why = "Only these cut a layer into local work and messages.",
     .example = WEFT_OVERLAPPED
     "hardware.gpu=h100 model.bf16=true model.moe_token_dispatcher_type=allgather",
     .also = "TC-63",
     .judge = judge_dispatcher},
    {.id = "W69",
     .kind = Kind::Warning,
     .when =
         "expert-parallel overlap, or shared experts under dispatch and combine, with allgather "
         "on CPU ranks",
     .then = "warned: it runs",
     .why =
         "Weft's allgather is cut into the same pieces as the others; C16 and TC-33 bind on GPUs.",
     .example = "model.num_moe_experts=4 model.expert_model_parallel_size=2 "
                "train.global_batch_size=4 comm_overlap.overlap_moe_expert_parallel_comm=true "
                "model.moe_token_dispatcher_type=allgather",
     .judge = judge_dispatcher_on_cpu},
    {.id = "C17",
     .when = "expert-parallel overlap on GPUs without model.bf16 or model.fp16",
     .then = "refused",
     .why =
         "The kernels of the overlapped order are made for 16-bit rows. fp8 and fp4 are products "
         "inside a bf16 run, and fine.",
     .example = WEFT_OVERLAPPED "hardware.gpu=h100",
     .also = "TC-65",
     .judge = judge_precision},
    {.id = "W24",
     .kind = Kind::Warning,
     .when = "expert-parallel overlap on CPU ranks in fp32",
     .then = "warned: it runs",
     .why = "The order does not depend on the dtype; C17 binds on GPUs. It is said, so that nobody "
            "takes the config to a GPU and wonders.",
     .example = "model.num_moe_experts=4 model.expert_model_parallel_size=2 "
                "train.global_batch_size=4 comm_overlap.overlap_moe_expert_parallel_comm=true",
     .judge = judge_precision_on_cpu},
    {.id = "C19",
     .when = "expert-parallel overlap, pp > 1, and vpp is null",
     .then = "refused",
     .why = "In a pipeline the overlapped order is made chunk by chunk; 1 is a number of chunks "
            "too, null is none. A layout of more stages than pp says it as well (TC-111).",
     .example = WEFT_OVERLAPPED "model.pipeline_model_parallel_size=2",
     .also = "TC-61 EX-09",
     .judge = judge_chunks},
    {.id = "C25",
     .when = "expert-parallel overlap with model.mtp_num_layers other than null, 0 and 1",
     .then = "refused",
     .why = "The overlapped order has one place for it, after the last layer.",
     .example = WEFT_OVERLAPPED "model.mtp_num_layers=2",
     .also = "TC-67",
     .judge = judge_mtp},
    {.id = "TC-73",
     .when = "model.ep_overlap_early_attn_memory_release without expert-parallel overlap",
     .then = "refused",
     .why = "It moves the backward attention before the forward experts, and only the overlapped "
            "order has both in one place.",
     .example = "model.ep_overlap_early_attn_memory_release=true",
     .judge = judge_early_release},
};
#undef WEFT_OVERLAPPED

}  // namespace

std::span<const Rule> expert_overlap_rules() { return kExpertOverlapRules; }

}  // namespace weft::rules
