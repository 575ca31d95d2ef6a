#include "weft/rules/advice/advice.h"

#include <gtest/gtest.h>

#include <set>

#include "weft/base/text.h"
#include "weft/rules/validate.h"
#include "weft/words/recipe.h"
#include "weft/words/resolution.h"

namespace weft::rules {
namespace advice_test {

std::set<std::string> ids(std::string_view words) {
  const Verdict verdict = judge(words::with_words({}, base::split(words, ' ')));
  EXPECT_TRUE(verdict.legal()) << words << (verdict.legal() ? "" : to_text(verdict.errors.front()));
  std::set<std::string> all;
  if (!verdict.legal()) return all;
  for (const Note& note : advise(verdict.config)) {
    EXPECT_FALSE(note.message.empty() || note.fix.empty()) << note.id;
    all.insert(note.id);
  }
  return all;
}

TEST(Advice, EveryExampleBringsItUp) {
  for (const Advice& advice : all_advice()) {
    EXPECT_TRUE(ids(advice.example).contains(std::string(advice.id))) << advice.id;
    EXPECT_EQ(find_advice(advice.id), &advice);
    for (const std::string_view text : {advice.when, advice.then, advice.why, advice.measured}) {
      EXPECT_FALSE(text.empty()) << advice.id;
    }
  }
}

TEST(Advice, DefaultsGetNone) {
  EXPECT_TRUE(advise(judge({}).config).empty());
  EXPECT_EQ(find_advice("A99"), nullptr);
}

TEST(Advice, ManyMicroBatchesOverSlowLinksAreFineWithOverlap) {
  const auto all =
      ids("hardware.gpu=h100 model.num_moe_experts=16 model.expert_model_parallel_size=16 "
          "model.bf16=true "
          "model.moe_router_dtype=fp32 comm_overlap.overlap_moe_expert_parallel_comm=true "
          "train.global_batch_size=1024 model.moe_token_dispatcher_type=flex "
          "model.moe_flex_dispatcher_backend=hybridep");
  EXPECT_FALSE(all.contains("A1") || all.contains("A2") || all.contains("A3") ||
               all.contains("A9"));
}

TEST(Advice, AnOffloadOfNothingIsNotAdvisedAbout) {
  const std::string offload =
      "optimizer.optimizer_cpu_offload=true optimizer.optimizer_offload_fraction=";
  EXPECT_TRUE(ids(offload + "0.5").contains("A17"));
  EXPECT_FALSE(ids(offload + "0").contains("A17")) << "W40 says that nothing travels";
}

}  // namespace advice_test
}  // namespace weft::rules
