// CUDA graphs: implementations, scopes, and their conflicts.
#include <gtest/gtest.h>

#include "tests/rules/settled_support.h"
#include "weft/rules/advice/advice.h"

namespace weft::rules {
namespace graph_cases_test {

#define TE "model.cuda_graph_impl=transformer_engine model.use_te_rng_tracker=true "
#define FULL "model.cuda_graph_impl=full_iteration model.use_te_rng_tracker=true "
#define LOCAL "model.cuda_graph_impl=local model.use_te_rng_tracker=true "
#define NO_NAN "rerun_state_machine.check_for_nan_in_loss=false "
#define MOE "model.num_moe_experts=4 model.moe_ffn_hidden_size=32 "

TEST(Graphs, LocalCapturesOnlyWholeIterations) {
  for (const Case& c : {
           Case{.name = "VC-03 mlp",
          .words = LOCAL "model.cuda_graph_modules=[mlp]",
          .errors = "G2"},
           Case{.name = "VC-03 moe_router",
           .words = LOCAL MOE "model.cuda_graph_modules=[moe_router]",
           .errors = "G2"},
           Case{.name = "VC-03 legacy",
           .words = LOCAL "model.cuda_graph_scope=[mlp]",
           .errors = "G2"},
           Case{.name = "a whole layer", .words = LOCAL, .errors = "G2"},
           Case{.name = "by the old switch",
           .words = "model.enable_cuda_graph=true model.use_te_rng_tracker=true",
           .errors = "G2"},
       }) {
    expect_settled(c);
  }
  const Verdict verdict = judge_words(LOCAL "model.cuda_graph_modules=[mlp]");
  ASSERT_FALSE(verdict.errors.empty());
  EXPECT_NE(verdict.errors[0].fix.find("transformer_engine"), std::string::npos);
}

TEST(Graphs, WithoutScopesTheWholeLayerIsCaptured) {
#define DROP_PAD "model.moe_expert_capacity_factor=1 model.moe_pad_expert_input_to_capacity=true "
#define OVERLAP                                         \
  "model.expert_model_parallel_size=2 model.bf16=true " \
  "comm_overlap.overlap_moe_expert_parallel_comm=true " \
  "train.global_batch_size=4 "
  for (const Case& c : {
           Case{.name = "a dropless MoE", .words = TE MOE, .errors = "TC-88"},
           Case{.name = "a dropless MoE, by the old word",
           .words = TE MOE "model.cuda_graph_scope=[full]",
           .errors = "TC-88"},
           Case{.name = "dropping and padding", .words = TE MOE DROP_PAD},
           Case{.name = "a dense model", .words = TE},
           Case{.name = "beside the overlap", .words = TE MOE DROP_PAD OVERLAP, .errors = "TC-69"},
           Case{.name = "parts beside the overlap",
           .words = TE MOE OVERLAP "model.cuda_graph_modules=[attn,moe_router,moe_preprocess]"},
           Case{.name = "moe recomputed",
           .words = TE MOE DROP_PAD "model.recompute_granularity=selective "
                                    "model.recompute_modules=[moe]",
           .errors = "TC-91"},
           Case{.name = "activations moved",
           .words = TE MOE DROP_PAD "model.fine_grained_activation_offloading=true "
                                    "model.offload_modules=[core_attn]",
           .errors = "TC-94"},
       }) {
    expect_settled(c);
  }
  const Verdict dropless = judge_words(TE MOE);
  ASSERT_EQ(dropless.errors.size(), 1u);
  EXPECT_NE(dropless.errors[0].message.find("the whole layer"), std::string::npos);
  EXPECT_TRUE(
      judge_words(TE MOE "model.cuda_graph_modules=[attn,moe_router,moe_preprocess]").legal())
      << "the fix can be followed";
  const Verdict delayed =
      judge_words(TE MOE DROP_PAD OVERLAP
                  "comm_overlap.delay_wgrad_compute=true model.gradient_accumulation_fusion=false");
  for (const config::Finding& error : delayed.errors) {
    if (error.id != "C30") continue;
    EXPECT_NE(error.message.find("the whole layer"), std::string::npos) << error.message;
    EXPECT_NE(error.fix.find("name the parts"), std::string::npos) << error.fix;
  }
  EXPECT_TRUE(ids_of(delayed.errors).contains("C30"));
#undef DROP_PAD
#undef OVERLAP
}

TEST(Graphs, ANameRefusedWhileNothingIsCapturedSaysThatNamesCount) {
  const Verdict verdict =
      judge_words(MOE
                  "model.expert_model_parallel_size=2 model.bf16=true train.global_batch_size=4 "
                  "comm_overlap.overlap_moe_expert_parallel_comm=true "
                  "comm_overlap.delay_wgrad_compute=true model.cuda_graph_modules=[attn] "
                  "model.add_qkv_bias=true");
  ASSERT_EQ(ids_of(verdict.errors), std::set<std::string>{"C31"});
  EXPECT_TRUE(ids_of(verdict.automatic).contains("G1"));
  EXPECT_NE(verdict.errors[0].message.find("names count also while model.cuda_graph_impl = none"),
            std::string::npos)
      << verdict.errors[0].message;
}

TEST(Graphs, AWholeIterationOfADroplessMoeIsAdvisedToBoundItsRows) {
  const auto advised = [](const Verdict& verdict) {
    EXPECT_TRUE(verdict.legal());
    return std::ranges::any_of(advise(verdict.config),
                               [](const Note& note) { return note.id == "A20"; });
  };
  EXPECT_TRUE(advised(judge_words(FULL NO_NAN MOE)));
  EXPECT_FALSE(advised(judge_words(FULL NO_NAN)));
  EXPECT_FALSE(advised(judge_words(FULL NO_NAN MOE "model.moe_expert_capacity_factor=1 "
                                                   "model.moe_pad_expert_input_to_capacity=true")));
}

}  // namespace graph_cases_test
}  // namespace weft::rules

#undef TE
#undef FULL
#undef LOCAL
#undef NO_NAN
#undef MOE
#undef DROP_PAD
