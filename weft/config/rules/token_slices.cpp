// The tokens of a micro-batch in slices.
#include "weft/config/rules/judge.h"
#include "weft/config/rules/topics.h"

namespace weft::config {
namespace {

using base::text;

constexpr const char* kSlices = "comm_overlap.moe_token_slices";

void judge_tokens(Judge& judge) {
  if (!judge.sound({kSlices, "model.seq_length", "train.micro_batch_size"})) return;
  const std::int64_t slices = judge.overlap().moe_token_slices;
  const std::int64_t sequences = judge.config().train.micro_batch_size;
  const std::int64_t tokens = sequences * judge.model().seq_length;
  if (slices <= tokens) return;
  judge.report(kSlices,
               text("{} = {}, and a micro-batch has {} tokens (train.micro_batch_size = {} of "
                    "model.seq_length = {})",
                    kSlices,
                    slices,
                    tokens,
                    sequences,
                    judge.model().seq_length),
               "use fewer slices than tokens; 2 to 4 are enough to overlap");
}

constexpr Rule kRules[] = {
    {.id = "W61",
     .when = "more comm_overlap.moe_token_slices than tokens in a micro-batch",
     .then = "refused",
     .why = "A slice without tokens sends messages for nothing.",
     .example = "model.num_moe_experts=4 model.expert_model_parallel_size=2 "
                "train.global_batch_size=2 model.seq_length=2 comm_overlap.moe_token_slices=4",
     .judge = judge_tokens},
};

}  // namespace

std::span<const Rule> token_slice_rules() { return kRules; }

}  // namespace weft::config
