// Tokens of a micro-batch in slices.
#include "weft/derive/dispatch.h"
#include "weft/rules/judge.h"
#include "weft/rules/topics.h"

namespace weft::rules {
namespace {

using base::text;

constexpr const char* kSlices = "comm_overlap.moe_token_slices";

// Without dispatch between ranks, slices have no effect; W20 reports it.
bool tokens_travel(const Judge& judge) { return judge.model().tokens_travel(); }

void judge_sliced_tokens(Judge& judge) {
  if (!tokens_travel(judge)) return;
  if (!judge.sound({kSlices,
                    "model.seq_length",
                    "model.tensor_model_parallel_size",
                    "model.context_parallel_size",
                    "train.micro_batch_size"})) {
    return;
  }
  const std::int64_t slices = judge.overlap().moe_token_slices;
  const std::int64_t sequences = judge.config().train.micro_batch_size;
  const std::int64_t tokens = derive::tokens_of_rank(judge.config());
  if (slices <= std::max<std::int64_t>(tokens, 1)) return;
  judge.report(
      kSlices,
      text("{} = {}, and a rank has {} tokens of a micro-batch (train.micro_batch_size = {} of "
           "model.seq_length = {})",
           kSlices,
           slices,
           tokens,
           sequences,
           judge.model().seq_length),
      text("use at most {} slices; 2 to 4 are enough to overlap", tokens));
}

void judge_padded(Judge& judge) {
  const std::int64_t slices = judge.overlap().moe_token_slices;
  if (!tokens_travel(judge) || slices < 2 || !judge.model().moe_pad_expert_input_to_capacity)
    return;
  judge.report(kSlices,
               text("{} = {} with model.moe_pad_expert_input_to_capacity: an expert's capacity is "
                    "of the whole micro-batch, and one of the {} slices may bring it all",
                    kSlices,
                    slices,
                    slices),
               text("set {}=1, or leave the padding out", kSlices));
}

constexpr Rule kTokenSlicesRules[] = {
    {.id = "W61",
     .when = "more comm_overlap.moe_token_slices than tokens in a micro-batch",
     .then = "refused",
     .why = "A slice without tokens sends messages for nothing.",
     .example = "model.num_moe_experts=4 model.expert_model_parallel_size=2 "
                "train.global_batch_size=2 model.seq_length=2 comm_overlap.moe_token_slices=4",
     .judge = judge_sliced_tokens},
    {.id = "W66",
     .when = "more than one of comm_overlap.moe_token_slices with padding to capacity",
     .then = "refused",
     .why = "Every slice would need the room of the whole micro-batch.",
     .example = "model.num_moe_experts=4 model.expert_model_parallel_size=2 "
                "train.global_batch_size=2 comm_overlap.moe_token_slices=2 "
                "model.moe_expert_capacity_factor=1 model.moe_pad_expert_input_to_capacity=true",
     .judge = judge_padded},
};

}  // namespace

std::span<const Rule> token_slice_rules() { return kTokenSlicesRules; }

}  // namespace weft::rules
