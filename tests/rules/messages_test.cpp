// Messages of one judgement agree with each other, and name their subject.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/rules/settled_support.h"

namespace weft::rules {
namespace messages_test {

#define OVERLAP                                                 \
  "model.num_moe_experts=4 model.expert_model_parallel_size=2 " \
  "train.global_batch_size=4 comm_overlap.overlap_moe_expert_parallel_comm=true "
#define FLEX                                                    \
  "model.num_moe_experts=4 model.expert_model_parallel_size=2 " \
  "train.global_batch_size=2 model.moe_token_dispatcher_type=flex "

// Keys that W22 reports as without effect.
std::set<std::string> idle_keys(const Verdict& verdict) {
  std::set<std::string> keys;
  for (const config::Finding& warning : verdict.warnings) {
    if (warning.id == "W22") keys.insert(warning.key);
  }
  return keys;
}

TEST(Messages, AKeyThatARefusalSpeaksOfIsNotSaidToDoNothing) {
  const Verdict wire = judge_words(FLEX
                                   "model.moe_flex_dispatcher_backend=ncclep "
                                   "model.moe_combine_bwd_dtype=mxfp8 "
                                   "model.moe_grouped_gemm=false");
  EXPECT_TRUE(ids_of(wire.errors).contains("TC-25"));
  EXPECT_FALSE(idle_keys(wire).contains("model.moe_grouped_gemm"));
  EXPECT_TRUE(
      idle_keys(judge_words("model.moe_grouped_gemm=false")).contains("model.moe_grouped_gemm"));
}

TEST(Messages, TheBackendIsNamedWhereTheDispatcherIsFlex) {
  const Verdict verdict = judge_words(FLEX
                                      "runtime.ranks_per_node=2 "
                                      "model.moe_flex_dispatcher_backend=hybridep "
                                      "model.moe_dispatch_fwd_dtype=mxfp8");
  const auto error = std::ranges::find(verdict.errors, "TC-24", &config::Finding::id);
  ASSERT_NE(error, verdict.errors.end());
  EXPECT_NE(error->message.find("model.moe_flex_dispatcher_backend = hybridep"), std::string::npos)
      << error->message;
}

TEST(Messages, ARuleAnswersForNumbersThatItKnows) {
  expect_settled({.name = "a capability of no known GPU",
                  .words = FLEX "model.moe_flex_dispatcher_backend=deepep "
                                "hardware.compute_capability=200",
                  .errors = "F9"});
  const auto errors = judge_words(OVERLAP "model.mtp_num_layers=-1").errors;
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].id, "C25");
  expect_settled({.name = "no overlap", .words = "model.mtp_num_layers=-1", .errors = "W1"});
}

TEST(Messages, AFullyShardedRunSumsInSymmetricBuffers) {
  expect_settled({.name = "cleared",
                  .words = "ddp.use_megatron_fsdp=true ddp.average_in_collective=true",
                  .automatic = "V23",
                  .after = "ddp.average_in_collective=false"});
  expect_settled({.name = "kept",
                  .words = "ddp.use_megatron_fsdp=true ddp.average_in_collective=true "
                           "ddp.disable_symmetric_registration=true",
                  .after = "ddp.average_in_collective=true"});
}

#undef OVERLAP
#undef FLEX

}  // namespace messages_test
}  // namespace weft::rules
