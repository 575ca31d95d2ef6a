// Keys of earlier versions become the keys that replaced them.
#include <gtest/gtest.h>

#include "tests/rules/settled_support.h"

namespace weft::rules {
namespace old_name_cases_test {

#define FLEX                                                                              \
  "model.num_moe_experts=8 model.expert_model_parallel_size=2 train.global_batch_size=2 " \
  "model.moe_token_dispatcher_type=flex "

TEST(OldNames, DeepEpIsABackendOfFlex) {
  for (const Case& c : {
           Case{.name = "backend open",
          .words = FLEX "model.moe_enable_deepep=true",
          .warnings = "TC-20a",
          .automatic = "TC-20a",
          .after = "model.moe_flex_dispatcher_backend=deepep model.moe_enable_deepep=false"},
           Case{.name = "backend deepep",
           .words = FLEX "model.moe_enable_deepep=true "
                         "model.moe_flex_dispatcher_backend=deepep",
           .after = "model.moe_enable_deepep=false"},
           Case{.name = "backend hybridep",
           .words = FLEX "model.moe_enable_deepep=true "
                         "model.moe_flex_dispatcher_backend=hybridep runtime.ranks_per_node=1",
           .errors = "TC-20"},
           Case{.name = "not flex",
           .words = "model.num_moe_experts=8 model.moe_enable_deepep=true",
           .errors = "TC-20"},
       }) {
    expect_settled(c);
  }
}

TEST(OldNames, SmsOfAnyBackendAreOneKey) {
  for (const Case& c : {
           Case{.name = "deepep's",
          .words = FLEX "model.moe_flex_dispatcher_backend=deepep model.moe_deepep_num_sms=24",
          .warnings = "TC-31",
          .after = "model.moe_flex_dispatcher_num_sms=24 model.moe_deepep_num_sms=null"},
           Case{.name = "both alike",
           .words = "model.moe_deepep_num_sms=16 model.moe_hybridep_num_sms=16",
           .after = "model.moe_flex_dispatcher_num_sms=16 model.moe_hybridep_num_sms=null"},
           Case{.name = "both, differing",
           .words = "model.moe_deepep_num_sms=16 model.moe_hybridep_num_sms=20",
           .errors = "TC-31a"},
           Case{.name = "the newer key wins",
           .words = "model.moe_deepep_num_sms=16 model.moe_hybridep_num_sms=20 "
                    "model.moe_flex_dispatcher_num_sms=32",
           .warnings = "TC-31",
           .after = "model.moe_flex_dispatcher_num_sms=32 model.moe_deepep_num_sms=null "
                    "model.moe_hybridep_num_sms=null"},
       }) {
    expect_settled(c);
  }
}

TEST(OldNames, RouterKeysAreTakenOver) {
  for (const Case& c : {
           Case{.name = "limited devices",
          .words = "model.num_moe_experts=8 model.expert_model_parallel_size=4 "
                   "train.global_batch_size=4 model.moe_router_topk_limited_devices=2",
          .warnings = "TC-44",
          .after = "model.moe_router_group_topk=2 model.moe_router_num_groups=4 "
                   "model.moe_router_topk_limited_devices=null"},
           Case{.name = "more devices than there are",
           .words = "model.num_moe_experts=8 model.moe_router_topk_limited_devices=2",
           .errors = "TC-43",
           .warnings = "TC-44"},
           Case{.name = "padding for fp8",
           .words = "model.num_moe_experts=8 model.fp8=e4m3 "
                    "model.moe_router_padding_for_fp8=true",
           .warnings = "TC-45",
           .after = "model.moe_router_padding_for_quantization=true "
                    "model.moe_router_padding_for_fp8=false"},
           Case{.name = "a negative capacity",
           .words = "model.num_moe_experts=8 model.moe_expert_capacity_factor=-0.5",
           .automatic = "TC-36",
           .after = "model.moe_expert_capacity_factor=null"},
       }) {
    expect_settled(c);
  }
}

#define GRAPHS "model.use_te_rng_tracker=true rerun_state_machine.check_for_nan_in_loss=false "

TEST(OldNames, GraphSwitchesAndScopesAreTakenOver) {
  for (const Case& c : {
           Case{.name = "external",
          .words = GRAPHS "model.external_cuda_graph=true model.cuda_graph_scope=[attn]",
          .warnings = "TC-95",
          .after = "model.cuda_graph_impl=transformer_engine model.cuda_graph_modules=[attn] "
                   "model.external_cuda_graph=false model.cuda_graph_scope=[]"},
           Case{.name = "local of an iteration",
           .words = GRAPHS "model.enable_cuda_graph=true "
                           "model.cuda_graph_scope=[full_iteration]",
           .warnings = "TC-95",
           .automatic = "G3",
           .after = "model.cuda_graph_impl=full_iteration model.cuda_graph_modules=[] "
                    "model.enable_cuda_graph=false"},
           Case{.name = "full is a whole layer",
           .words = GRAPHS "model.cuda_graph_impl=transformer_engine "
                           "model.cuda_graph_scope=[full]",
           .warnings = "TC-95",
           .after = "model.cuda_graph_modules=[] model.cuda_graph_scope=[]"},
           Case{.name = "old and new scopes are one list",
           .words = GRAPHS "model.cuda_graph_impl=transformer_engine "
                           "model.cuda_graph_modules=[attn] model.cuda_graph_scope=[mlp,attn]",
           .after = "model.cuda_graph_modules=[attn,mlp]"},
           Case{.name = "both switches",
           .words = GRAPHS "model.enable_cuda_graph=true model.external_cuda_graph=true",
           .errors = "TC-95a"},
           Case{.name = "a switch that agrees",
           .words = GRAPHS "model.external_cuda_graph=true "
                           "model.cuda_graph_impl=transformer_engine",
           .after = "model.cuda_graph_impl=transformer_engine model.external_cuda_graph=false"},
       }) {
    expect_settled(c);
  }
}

}  // namespace old_name_cases_test
}  // namespace weft::rules

#undef FLEX
#undef GRAPHS
