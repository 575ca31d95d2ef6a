// State that data-parallel ranks shard, and keys that set it twice.
#include <numeric>

#include "weft/derive/derived.h"
#include "weft/rules/judge.h"
#include "weft/rules/topics.h"

namespace weft::rules {

using namespace config;
namespace {

using base::text;

void judge_sharded_layers(Judge& judge) {
  const DdpConfig& ddp = judge.config().ddp;
  if (!ddp.use_megatron_fsdp) return;
  const std::string why = "ddp.use_megatron_fsdp shards optimizer state with the parameters";
  judge.set("ddp.use_distributed_optimizer", "true", why);
  judge.set("optimizer.use_distributed_optimizer", "true", why);
  if (!ddp.disable_symmetric_registration) {
    judge.set("ddp.average_in_collective",
              "false",
              "symmetric buffers of a fully sharded run are summed, not averaged "
              "(ddp.disable_symmetric_registration = false)");
  }
  const std::string reuse = "a fully sharded run has no whole gradient buffer to gather through";
  judge.set("ddp.reuse_grad_buf_for_mxfp8_param_ag", "false", reuse);
  judge.set("optimizer.reuse_grad_buf_for_mxfp8_param_ag", "false", reuse);
}

void judge_sharded_queues(Judge& judge) {
  if (!judge.config().ddp.use_megatron_fsdp) return;
  if (judge.config().hardware.cuda_device_max_connections != 1) return;
  judge.report("hardware.cuda_device_max_connections",
               "ddp.use_megatron_fsdp gathers and scatters beside compute, and "
               "hardware.cuda_device_max_connections = 1 puts all of it into one queue",
               "use 8 or more, or leave it out");
}

void judge_both_keys(Judge& judge) {
  const bool ddp = judge.config().ddp.use_distributed_optimizer;
  const bool optimizer = judge.config().optimizer.use_distributed_optimizer;
  if (ddp == optimizer) return;
  judge.set(
      ddp ? "optimizer.use_distributed_optimizer" : "ddp.use_distributed_optimizer",
      "true",
      text("ddp.use_distributed_optimizer = {} and optimizer.use_distributed_optimizer = {}: both "
           "are on now",
           ddp,
           optimizer),
      "set both the same");
}

// Without sharding, gradients are still reduced in buckets, but no parameters are gathered.
bool works_alone(std::string_view key) {
  return key == "ddp.overlap_grad_reduce" || key == "ddp.bucket_size";
}

void judge_unsharded(Judge& judge) {
  const DdpConfig& ddp = judge.config().ddp;
  const OptimizerConfig& optimizer = judge.config().optimizer;
  const CommOverlapConfig& overlap = judge.overlap();
  if (ddp.use_distributed_optimizer) return;
  const auto lost = [&](const char* key, bool differs, const char* held) {
    if (!differs) return;
    judge.report(key,
                 text("{} has no effect without a distributed optimizer: {} decides", key, held),
                 text("set ddp.use_distributed_optimizer=true, or {}",
                      works_alone(held) ? text("set {} itself", held) : "leave it out"));
  };
  const auto differs = [](std::optional<bool> said, bool held) { return said && *said != held; };
  lost("comm_overlap.overlap_grad_reduce",
       differs(overlap.overlap_grad_reduce, ddp.overlap_grad_reduce),
       "ddp.overlap_grad_reduce");
  lost("comm_overlap.overlap_param_gather",
       differs(overlap.overlap_param_gather, ddp.overlap_param_gather),
       "ddp.overlap_param_gather");
  lost("comm_overlap.overlap_param_gather_with_optimizer_step",
       differs(overlap.overlap_param_gather_with_optimizer_step,
               optimizer.overlap_param_gather_with_optimizer_step),
       "optimizer.overlap_param_gather_with_optimizer_step");
  lost("comm_overlap.align_param_gather",
       differs(overlap.align_param_gather, ddp.align_param_gather),
       "ddp.align_param_gather");
  lost("comm_overlap.bucket_size",
       overlap.bucket_size && overlap.bucket_size != ddp.bucket_size,
       "ddp.bucket_size");
}

void judge_bucket_words(Judge& judge) {
  const DdpConfig& ddp = judge.config().ddp;
  if (!ddp.num_buckets) return;
  const std::optional<std::int64_t> size =
      judge.overlap().bucket_size ? judge.overlap().bucket_size : ddp.bucket_size;
  if (!size) return;
  judge.report("ddp.num_buckets",
               text("ddp.num_buckets = {} and a bucket size of {} parameters ({}) say the same "
                    "thing twice",
                    *ddp.num_buckets,
                    *size,
                    judge.overlap().bucket_size ? "comm_overlap.bucket_size" : "ddp.bucket_size"),
               "leave one of them out");
}

constexpr const char* kInstances = "ddp.num_distributed_optimizer_instances";

void judge_instances(Judge& judge) {
  const std::int64_t instances = judge.config().ddp.num_distributed_optimizer_instances;
  if (!judge.sound({kInstances}) || !judge.dp()) return;
  const grid::Layout layout = derive::layout_of(judge.config());
  // ranks that hold all experts together
  const std::int64_t holders = layout.etp * layout.ep * layout.pp;
  if (layout.world % holders != 0) return;
  const std::int64_t dense = layout.world / (layout.tp * layout.pp);
  const std::int64_t expert = layout.world / holders;
  if (dense % instances == 0 && expert % instances == 0) return;
  const std::int64_t most = std::gcd(dense, expert);
  judge.report(kInstances,
               text("{} = {} must divide dp*cp = {} and edp = {}: an instance is as many ranks as "
                    "any other",
                    kInstances,
                    instances,
                    dense,
                    expert),
               most == 1 ? "leave it out" : text("use a divisor of {}", most));
}

void judge_instances_of_nothing(Judge& judge) {
  const std::int64_t instances = judge.config().ddp.num_distributed_optimizer_instances;
  if (instances <= 1 || judge.config().ddp.use_distributed_optimizer) return;
  judge.report(kInstances,
               text("{} = {} and ddp.use_distributed_optimizer = false: without a distributed "
                    "optimizer every rank is an instance of its own",
                    kInstances,
                    instances),
               text("set ddp.use_distributed_optimizer=true, or leave {} out", kInstances));
}

constexpr Rule kShardingRules[] = {
    {.id = "V23",
     .kind = Kind::Automatic,
     .when = "ddp.use_megatron_fsdp",
     .then =
         "use_distributed_optimizer := true in ddp and optimizer; average_in_collective := false, "
         "unless ddp.disable_symmetric_registration; reuse_grad_buf_for_mxfp8_param_ag := "
         "false",
     .why = "Fully sharded runs shard the optimizer as well. Weft knows one kind of them, so the "
            "rules that keep two apart (V24, V25) have nothing to say.",
     .example = "ddp.use_megatron_fsdp=true",
     .also = "V24 V25",
     .judge = judge_sharded_layers},
    {.id = "W52",
     .when = "ddp.use_megatron_fsdp with hardware.cuda_device_max_connections = 1",
     .then = "refused",
     .why = "One queue runs everything in the order it was launched, so nothing of a fully sharded "
            "run travels under compute.",
     .example = "ddp.use_megatron_fsdp=true hardware.cuda_device_max_connections=1",
     .judge = judge_sharded_queues},
    {.id = "V18",
     .kind = Kind::Mended,
     .when = "use_distributed_optimizer differs between ddp and optimizer",
     .then = "both := true",
     .why = "They are two names of one switch. Whoever set one of them meant it.",
     .example = "ddp.use_distributed_optimizer=true",
     .also = "VC-12",
     .judge = judge_both_keys},
    {.id = "W128",
     .when = "ddp.num_distributed_optimizer_instances does not divide dp*cp and edp",
     .then = "refused",
     .why = "Ranks that sum gradients are cut into instances of equal size: dense parameters' "
            "dp*cp, experts' edp.",
     .example = "ddp.use_distributed_optimizer=true optimizer.use_distributed_optimizer=true "
                "runtime.world_size=4 train.global_batch_size=4 "
                "ddp.num_distributed_optimizer_instances=3",
     .judge = judge_instances},
    {.id = "W129",
     .when = "ddp.num_distributed_optimizer_instances > 1 without a distributed optimizer",
     .then = "refused",
     .why = "Instances are copies of a state that ranks share. Megatron-Core refuses it too.",
     .example = "runtime.world_size=2 train.global_batch_size=2 "
                "ddp.num_distributed_optimizer_instances=2",
     .judge = judge_instances_of_nothing},
    {.id = "C32",
     .kind = Kind::Warning,
     .when = "a comm_overlap.* key of data-parallel ranks without a distributed optimizer, and ddp "
             "says otherwise",
     .then = "warned; nothing is set for data-parallel ranks",
     .why = "Megatron skips this side in silence where optimizer state is not sharded. "
            "ddp.overlap_grad_reduce works there, and is set by itself.",
     .example = "comm_overlap.overlap_grad_reduce=true",
     .judge = judge_unsharded},
    {.id = "W51",
     .when = "ddp.num_buckets beside a bucket size",
     .then = "refused",
     .why = "Each follows from the other.",
     .example = "ddp.num_buckets=4 ddp.bucket_size=1000 ddp.overlap_grad_reduce=true",
     .judge = judge_bucket_words},
};

}  // namespace

std::span<const Rule> sharding_rules() { return kShardingRules; }

}  // namespace weft::rules
