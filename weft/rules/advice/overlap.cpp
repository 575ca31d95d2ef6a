// Cases in which expert-parallel overlap pays.
#include "weft/base/text.h"
#include "weft/rules/advice/facts.h"
#include "weft/rules/advice/topics.h"
#include "weft/rules/chosen.h"

namespace weft::rules {

using namespace config;
namespace {

using base::text;

std::optional<Note> small_expert_group(const Config& config) {
  const RunFacts run = facts_of(config);
  if (!config.comm_overlap.overlap_moe_expert_parallel_comm || run.ep > 4 || run.machines > 2)
    return {};
  if (config.model.moe_token_dispatcher_type != Dispatcher::AllToAll) return {};
  return note(
      kOverlap,
      text("overlap over ep = {} with alltoall on {} is likely slower than none",
           run.ep,
           base::counted(run.machines, "machine")),
      "measure both: weft perf --vary comm_overlap.overlap_moe_expert_parallel_comm=false,true");
}

std::optional<Note> few_micro_batches(const Config& config) {
  const RunFacts run = facts_of(config);
  if (!config.comm_overlap.overlap_moe_expert_parallel_comm || run.micro_batches >= 4) return {};
  return note(kOverlap,
              text("a step has {}: of its {} passes the first forward and the last "
                   "backward have no partner, so at most {:.0f} % of the communication can hide",
                   base::counted(run.micro_batches, "micro-batch"),
                   2 * run.micro_batches,
                   100.0 * static_cast<double>(run.micro_batches - 1) /
                       static_cast<double>(run.micro_batches)),
              "raise train.global_batch_size or lower train.micro_batch_size");
}

std::optional<Note> overlap_worth_a_try(const Config& config) {
  const RunFacts run = facts_of(config);
  if (config.comm_overlap.overlap_moe_expert_parallel_comm || run.ep <= 4) return {};
  if (run.ep * run.etp <= run.domain || run.micro_batches < 4) return {};
  const bool excluded = config.model.moe_shared_expert_overlap ||
                        config.model.recompute_granularity == RecomputeGranularity::Full;
  if (excluded) return {};
  return note(kOverlap,
              text("ep = {} reaches beyond the {} GPUs of a fast domain and nothing hides its "
                   "dispatch and combine",
                   run.ep,
                   run.domain),
              text("try {}=true, alone", kOverlap));
}

std::optional<Note> delayed_alone(const Config& config) {
  if (!config.comm_overlap.delay_wgrad_compute) return {};
  return note(
      "comm_overlap.delay_wgrad_compute",
      "delayed weight gradients come with the overlap: what each gains is not known",
      "measure plain overlap first, then --vary comm_overlap.delay_wgrad_compute=false,true");
}

constexpr Advice kOverlapAdvice[] = {
    {.id = "A1",
     .when = "expert-parallel overlap with ep <= 4, alltoall and at most 2 machines",
     .then = "likely slower",
     .why = "Little communication is there to hide, and the interleaved order costs what it costs: "
            "smaller "
            "launches, events, less locality.",
     .measured =
         "Qwen3-30B-A3B, 2 H100 machines, EP4, alltoall: 822 -> 827 ms at batch 8, 4889 -> 5538 ms "
         "at batch 64.",
     .example = "model.num_moe_experts=4 model.expert_model_parallel_size=2 "
                "comm_overlap.overlap_moe_expert_parallel_comm=true train.global_batch_size=16",
     .judge = small_expert_group},
    {.id = "A2",
     .when = "expert-parallel overlap with fewer than 4 micro-batches a step",
     .then = "little can hide",
     .why = "A forward runs beside the backward of another micro-batch. The first forward and the "
            "last "
            "backward have no partner.",
     .measured = "2 of 2M forwards and backwards stay exposed: half at M = 2, a third at M = 3, an "
                 "eighth at M = 8.",
     .example = "model.num_moe_experts=4 model.expert_model_parallel_size=2 "
                "comm_overlap.overlap_moe_expert_parallel_comm=true train.global_batch_size=4",
     .judge = few_micro_batches},
    {.id = "A3",
     .when = "no overlap, ep beyond a fast domain, at least 4 micro-batches",
     .then = "worth a try",
     .why = "Dispatch and combine over slow links are 40 to 60 % of a step until something hides "
            "them.",
     .measured =
         "Qwen3-30B-A3B, 16 H100, EP16: alltoall 41.25 -> 31.31 s (1.32 times faster); HybridEP "
         "24.71 -> 20.99 s.",
     .example = "hardware.gpu=h100 model.num_moe_experts=16 model.expert_model_parallel_size=16 "
                "model.moe_router_dtype=fp32 train.global_batch_size=64 model.bf16=true",
     .judge = overlap_worth_a_try},
    {.id = "A4",
     .when = "delayed weight gradients",
     .then = "measure them apart from the overlap",
     .why = "They widen the window for communication and keep activations longer. Where the window "
            "was "
            "wide enough they cost.",
     .measured =
         "Qwen3-30B-A3B 31.31 -> 31.20 s (neutral); Qwen3-Next-80B-A3B 4686 -> 4912 ms (slower).",
     .example = "model.num_moe_experts=4 model.expert_model_parallel_size=2 "
                "comm_overlap.overlap_moe_expert_parallel_comm=true "
                "comm_overlap.delay_wgrad_compute=true train.global_batch_size=16",
     .judge = delayed_alone},
};

}  // namespace

std::span<const Advice> overlap_advice() { return kOverlapAdvice; }

}  // namespace weft::rules
