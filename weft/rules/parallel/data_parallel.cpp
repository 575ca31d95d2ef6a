// Gradients and parameters between data-parallel ranks: buckets and overlap.
//
// Non-null comm_overlap.* keys are the user's wish; ddp.* and optimizer.* hold the effective
// values. The rules of this file set both, so that they always agree.
#include "weft/derive/pipeline.h"
#include "weft/rules/judge.h"
#include "weft/rules/topics.h"

namespace weft::rules {

using namespace config;
namespace {

using base::text;

constexpr std::int64_t kBucket = 128 * 1024 * 1024;  // parameters

const char* word_of(bool on) { return on ? "true" : "false"; }

// comm_overlap.* governs data-parallel ranks only with the distributed optimizer (C32).
std::optional<std::int64_t> sharding_ranks(const Judge& judge) {
  if (!judge.config().ddp.use_distributed_optimizer) return std::nullopt;
  return judge.dp();
}

// Sets the effective keys to the user's comm_overlap.* value, or to `automatic` if that is null.
void decide(Judge& judge,
            const std::string& key,
            std::optional<bool> said,
            std::initializer_list<const char*> effective,
            bool automatic,
            const std::string& why) {
  if (!said) judge.set(key, word_of(automatic), why);
  const bool on = said.value_or(automatic);
  for (const char* held : effective) {
    judge.set(held, word_of(on), said ? text("{} = {} decides", key, on) : why);
  }
}

void judge_bucket_size(Judge& judge, std::int64_t dp) {
  const DdpConfig& ddp = judge.config().ddp;
  const std::optional<std::int64_t> said = judge.overlap().bucket_size;
  if (said) {
    judge.set("ddp.bucket_size",
              text("{}", *said),
              text("comm_overlap.bucket_size = {} decides", *said));
  } else if (ddp.bucket_size) {
    judge.set("comm_overlap.bucket_size",
              text("{}", *ddp.bucket_size),
              text("ddp.bucket_size = {} is asked for", *ddp.bucket_size));
  } else if (!ddp.num_buckets) {
    const std::string why =
        text("dp = {} ranks exchange gradients and parameters in buckets of 128 Mi parameters", dp);
    judge.set("comm_overlap.bucket_size", text("{}", kBucket), why);
    judge.set("ddp.bucket_size", text("{}", kBucket), why);
  }
}

bool is_virtual_pipeline(const ModelConfig& model) {
  return model.pipeline_model_parallel_size > 1 && derive::virtual_stages(model) > 1;
}

// True for parameter gathers under the forward of a virtual pipeline.
bool wants_alignment(const Judge& judge) {
  return is_virtual_pipeline(judge.model()) && judge.config().ddp.overlap_param_gather;
}

void judge_shards(Judge& judge) {
  const std::optional<std::int64_t> dp = sharding_ranks(judge);
  if (!dp || *dp <= 1) return;
  const CommOverlapConfig said = judge.overlap();
  judge_bucket_size(judge, *dp);
  decide(judge,
         "comm_overlap.overlap_grad_reduce",
         said.overlap_grad_reduce,
         {"ddp.overlap_grad_reduce"},
         true,
         text("dp = {} ranks reduce gradients while the backward goes on", *dp));
  decide(judge,
         "comm_overlap.overlap_param_gather",
         said.overlap_param_gather,
         {"ddp.overlap_param_gather", "optimizer.overlap_param_gather"},
         true,
         text("dp = {} ranks gather parameters while the forward goes on", *dp));
  decide(judge,
         "comm_overlap.overlap_param_gather_with_optimizer_step",
         said.overlap_param_gather_with_optimizer_step,
         {"optimizer.overlap_param_gather_with_optimizer_step"},
         judge.config().optimizer.overlap_param_gather_with_optimizer_step,
         "parameters are gathered under the optimizer's step only where that is asked for");
  if (wants_alignment(judge)) return;  // C34
  decide(judge,
         "comm_overlap.align_param_gather",
         said.align_param_gather,
         {"ddp.align_param_gather"},
         judge.config().ddp.align_param_gather,
         text("only chunks of a virtual pipeline wait for each other's gathers (pp = {}, vpp = "
              "{})",
              judge.model().pipeline_model_parallel_size,
              derive::virtual_stages(judge.model())));
}

void judge_alignment(Judge& judge) {
  const std::optional<std::int64_t> dp = sharding_ranks(judge);
  if (!dp || *dp <= 1 || !wants_alignment(judge)) return;
  decide(judge,
         "comm_overlap.align_param_gather",
         judge.overlap().align_param_gather,
         {"ddp.align_param_gather"},
         true,
         text("the {} stages of pp = {} and vpp = {} start their gathers together",
              judge.model().pipeline_model_parallel_size * derive::virtual_stages(judge.model()),
              judge.model().pipeline_model_parallel_size,
              derive::virtual_stages(judge.model())));
}

void judge_one_shard(Judge& judge) {
  if (sharding_ranks(judge) != 1) return;
  const CommOverlapConfig said = judge.overlap();
  const std::int64_t cp = judge.model().context_parallel_size;
  const std::string why =
      cp == 1 ? "dp = 1 has nobody to exchange gradients and parameters with"
              : text(
                    "left open, dp = 1 decides that the cp = {} ranks exchange gradients and "
                    "parameters at the ends of a step",
                    cp);
  judge.set("ddp.bucket_size", said.bucket_size ? text("{}", *said.bucket_size) : "null", why);
  decide(judge,
         "comm_overlap.overlap_grad_reduce",
         said.overlap_grad_reduce,
         {"ddp.overlap_grad_reduce"},
         false,
         why);
  decide(judge,
         "comm_overlap.overlap_param_gather",
         said.overlap_param_gather,
         {"ddp.overlap_param_gather", "optimizer.overlap_param_gather"},
         false,
         why);
  decide(judge,
         "comm_overlap.overlap_param_gather_with_optimizer_step",
         said.overlap_param_gather_with_optimizer_step,
         {"optimizer.overlap_param_gather_with_optimizer_step"},
         false,
         why);
  decide(judge,
         "comm_overlap.align_param_gather",
         said.align_param_gather,
         {"ddp.align_param_gather"},
         false,
         why);
}

void judge_waiting_buckets(Judge& judge) {
  if (!judge.config().ddp.use_distributed_optimizer) return;
  const bool delayed = judge.overlap().delay_wgrad_compute;
  judge.set("ddp.delay_wgrad_compute",
            word_of(delayed),
            text("a bucket waits for its weight gradients as comm_overlap.delay_wgrad_compute = {} "
                 "has them",
                 delayed));
}

// Reports requested exchanges that have no peers or no data.
void judge_idle_exchange(Judge& judge) {
  const DdpConfig& ddp = judge.config().ddp;
  const auto idle = [&](bool asked, const char* key, const char* why) {
    if (asked) judge.report(key, text("{} has no effect: {}", key, why), "leave it out");
  };
  const bool alone = judge.dp() == 1 && judge.model().context_parallel_size == 1;
  idle(alone && ddp.overlap_grad_reduce, "ddp.overlap_grad_reduce", "dp = 1 reduces nothing");
  idle(alone && ddp.overlap_param_gather, "ddp.overlap_param_gather", "dp = 1 gathers nothing");
  idle(!ddp.use_distributed_optimizer && ddp.overlap_param_gather && !alone,
       "ddp.overlap_param_gather",
       "without a distributed optimizer every rank holds all parameters");
  const bool exchanges = ddp.overlap_grad_reduce || ddp.overlap_param_gather;
  const bool by_rule = ddp.use_distributed_optimizer && ddp.bucket_size == kBucket;
  idle(ddp.bucket_size && !exchanges && !by_rule,
       "ddp.bucket_size",
       "nothing is exchanged bucket by bucket");
  idle(ddp.num_buckets && !exchanges, "ddp.num_buckets", "nothing is exchanged bucket by bucket");
  idle(ddp.delay_wgrad_compute && !judge.overlap().delay_wgrad_compute,
       "ddp.delay_wgrad_compute",
       "comm_overlap.delay_wgrad_compute = false delays nothing");
}

// Runs last: if dp = 1, both keys are off by then.
void judge_gather_keys(Judge& judge) {
  const bool ddp = judge.config().ddp.overlap_param_gather;
  const bool optimizer = judge.config().optimizer.overlap_param_gather;
  if (ddp == optimizer) return;
  judge.set(
      ddp ? "optimizer.overlap_param_gather" : "ddp.overlap_param_gather",
      "true",
      text("ddp.overlap_param_gather = {} and optimizer.overlap_param_gather = {}: both are on now",
           ddp,
           optimizer),
      "set both the same");
}

constexpr Rule kDataParallelRules[] = {
    {.id = "C33",
     .kind = Kind::Automatic,
     .when = "a distributed optimizer and dp > 1",
     .then = "bucket_size := 134217728 parameters, overlap_grad_reduce := true, "
             "overlap_param_gather := true, in comm_overlap where left open and in ddp and "
             "optimizer",
     .why = "With sharded state every step reduces gradients and gathers parameters; both can "
            "travel under compute, bucket by bucket. What comm_overlap says, false included, is "
            "kept (C2, C3), each key for itself. A bucket size or count in ddp counts as the "
            "user's word too.",
     .example = "ddp.use_distributed_optimizer=true optimizer.use_distributed_optimizer=true "
                "runtime.world_size=2 train.global_batch_size=2",
     .judge = judge_shards},
    {.id = "C34",
     .kind = Kind::Automatic,
     .when = "C33 with pp > 1, vpp > 1 and overlapped parameter gathers",
     .then = "align_param_gather := true",
     .why = "A stage that gathers later than its neighbours makes the whole pipeline wait for it.",
     .example = "ddp.use_distributed_optimizer=true optimizer.use_distributed_optimizer=true "
                "runtime.world_size=4 train.global_batch_size=4 model.num_layers=4 "
                "model.pipeline_model_parallel_size=2 "
                "model.virtual_pipeline_model_parallel_size=2",
     .judge = judge_alignment},
    {.id = "C35",
     .kind = Kind::Automatic,
     .when = "a distributed optimizer and dp = 1",
     .then = "bucket_size := null, and every overlap of gradients and parameters := false, also "
             "where ddp had it on",
     .why =
         "There is nobody to exchange with, or only the ranks that share sequences (cp), of which "
         "Megatron does not ask. comm_overlap.* of the user is kept even so (C3): with "
         "cp > 1 it overlaps their exchange, else it is said to be idle.",
     .example = "ddp.use_distributed_optimizer=true optimizer.use_distributed_optimizer=true",
     .judge = judge_one_shard},
    {.id = "C37",
     .kind = Kind::Automatic,
     .when = "a distributed optimizer",
     .then = "ddp.delay_wgrad_compute := comm_overlap.delay_wgrad_compute",
     .why = "A bucket is reduced when its last weight gradient is there, and delayed ones come "
            "later than the backward.",
     .example = "ddp.use_distributed_optimizer=true optimizer.use_distributed_optimizer=true "
                "model.num_moe_experts=4 model.expert_model_parallel_size=2 "
                "train.global_batch_size=4 comm_overlap.overlap_moe_expert_parallel_comm=true "
                "comm_overlap.delay_wgrad_compute=true",
     .judge = judge_waiting_buckets},
    {.id = "V18a",
     .kind = Kind::Mended,
     .when = "overlap_param_gather differs between ddp and optimizer",
     .then = "both := true",
     .why = "They are two names of one switch. Whoever set one of them meant it.",
     .example = "ddp.overlap_param_gather=true",
     .judge = judge_gather_keys},
    {.id = "W53",
     .kind = Kind::Warning,
     .when = "an overlap of gradients or parameters, or buckets, with nothing to exchange",
     .then = "warned",
     .why = "dp = 1 has no neighbours, whole parameters need no gather, and buckets are for "
            "overlapped exchange.",
     .example = "ddp.overlap_grad_reduce=true",
     .judge = judge_idle_exchange},
};

}  // namespace

std::span<const Rule> data_parallel_rules() { return kDataParallelRules; }

}  // namespace weft::rules
