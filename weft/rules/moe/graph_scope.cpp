// Parts of a layer that CUDA graphs capture, and operations allowed inside them.
#include "weft/rules/captured.h"
#include "weft/rules/chosen.h"
#include "weft/rules/judge.h"
#include "weft/rules/topics.h"

namespace weft::rules {

using namespace config;
namespace {

using base::text;

void judge_moe_and_router(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (!names_scope(model, CudaGraphScope::Moe)) return;
  if (!names_scope(model, CudaGraphScope::MoeRouter)) return;
  judge.report("model.cuda_graph_modules",
               text("model.cuda_graph_modules = {}: moe holds moe_router",
                    typed_list(model.cuda_graph_modules)),
               "keep one of them");
}

void judge_preprocess_alone(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (!names_scope(model, CudaGraphScope::MoePreprocess)) return;
  if (names_scope(model, CudaGraphScope::MoeRouter)) return;
  judge.report("model.cuda_graph_modules",
               text("model.cuda_graph_modules = {}: moe_preprocess goes on from moe_router",
                    typed_list(model.cuda_graph_modules)),
               "add moe_router");
}

void judge_moe_of_dense(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (model.experts() > 1) return;
  for (const CudaGraphScope scope : {CudaGraphScope::Moe, CudaGraphScope::MoeRouter}) {
    if (!names_scope(model, scope)) continue;
    judge.report("model.cuda_graph_modules",
                 text("model.cuda_graph_modules = {}, and model.num_moe_experts = {}",
                      typed_list(model.cuda_graph_modules),
                      model.num_moe_experts ? text("{}", *model.num_moe_experts) : "null"),
                 text("take {} out", word(scope)));
  }
}

void judge_mlp_of_moe(Judge& judge) {
  if (!names_scope(judge.model(), CudaGraphScope::Mlp) || !every_layer_is_moe(judge)) return;
  judge.report("model.cuda_graph_modules",
               text("model.cuda_graph_modules = {}, and all {} layers are MoE",
                    typed_list(judge.model().cuda_graph_modules),
                    judge.model().num_layers),
               "take mlp out");
}

void judge_dropless_moe(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (!captures(model, CudaGraphScope::Moe) || drops_and_pads(model)) return;
  judge.report("model.cuda_graph_modules",
               text("a CUDA graph over {} needs the same rows for every expert at every step, and "
                    "tokens are not dropped and padded to a capacity",
                    captured_text(model, CudaGraphScope::Moe)),
               "set model.moe_expert_capacity_factor and "
               "model.moe_pad_expert_input_to_capacity=true, or "
               "model.cuda_graph_modules=[attn,moe_router,moe_preprocess]");
}

void judge_preprocess_sync(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (!names_scope(model, CudaGraphScope::MoePreprocess) || drops_and_pads(model)) return;
  if (model.moe_token_dispatcher_type != Dispatcher::AllToAll) return;
  const bool padded = model.moe_router_padding_for_quantization;
  if (!model.moe_expert_capacity_factor && !padded) return;
  judge.report("model.cuda_graph_modules",
               text("moe_preprocess is captured, and with alltoall {} the host reads the counts "
                    "there",
                    padded ? "and model.moe_router_padding_for_quantization"
                           : "and model.moe_expert_capacity_factor"),
               "take moe_preprocess out, or leave the other out");
}

void judge_recomputed_router(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (model.cuda_graph_impl != CudaGraphImpl::TransformerEngine) return;
  if (!captures(model, CudaGraphScope::MoeRouter)) return;
  if (!recomputes(model, RecomputeModule::Moe)) return;
  judge.report("model.cuda_graph_modules",
               text("a CUDA graph over {} holds the router, and recomputing moe runs it again "
                    "outside its graph",
                    captured_text(model, CudaGraphScope::MoeRouter)),
               text("take moe out of model.recompute_modules, or {}",
                    leave_out_text(model, CudaGraphScope::MoeRouter)));
}

void judge_random_recompute(Judge& judge) {
  const ModelConfig& model = judge.model();
  const auto check =
      [&](CudaGraphScope scope, RecomputeModule module, const char* key, double amount) {
        if (amount <= 0 || !captures(model, scope) || !recomputes(model, module)) return;
        judge.report(
            key,
            text("{} = {} inside a graph of {}, of which {} is recomputed: the second "
                 "forward would draw other numbers",
                 key,
                 amount,
                 word(scope),
                 word(module)),
            text("set {} to 0, or take {} out of model.recompute_modules", key, word(module)));
      };
  const double jitter = model.moe_input_jitter_eps.value_or(0);
  check(CudaGraphScope::Attn,
        RecomputeModule::CoreAttn,
        "model.attention_dropout",
        model.attention_dropout);
  check(CudaGraphScope::Mlp, RecomputeModule::Mlp, "model.hidden_dropout", model.hidden_dropout);
  check(CudaGraphScope::Moe, RecomputeModule::Moe, "model.hidden_dropout", model.hidden_dropout);
  check(CudaGraphScope::Moe, RecomputeModule::Moe, "model.moe_input_jitter_eps", jitter);
}

void judge_captured_offload(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (!model.fine_grained_activation_offloading) return;
  if (model.cuda_graph_impl == CudaGraphImpl::None) return;
  if (captures(model, CudaGraphScope::Moe)) {
    judge.report("model.cuda_graph_modules",
                 text("a CUDA graph over {} with model.fine_grained_activation_offloading",
                      captured_text(model, CudaGraphScope::Moe)),
                 text("{}, or leave the offload out", leave_out_text(model, CudaGraphScope::Moe)));
  }
  if (model.cuda_graph_warmup_steps == 0) {
    judge.report("model.cuda_graph_warmup_steps",
                 "model.cuda_graph_warmup_steps = 0 with model.fine_grained_activation_offloading, "
                 "which learns in those steps what to move",
                 "use at least 1");
  }
  if (model.cuda_graph_impl == CudaGraphImpl::FullIteration && model.max_inflight_offloads < 0) {
    judge.report(
        "model.max_inflight_offloads",
        text("model.max_inflight_offloads = {} with model.cuda_graph_impl = full_iteration "
             "and offloaded modules",
             model.max_inflight_offloads),
        "set how many copies may be under way, at least 0");
  }
}

constexpr Rule kGraphScopeRules[] = {
    {.id = "TC-84",
     .when = "the scopes moe and moe_router together",
     .then = "refused",
     .why = "The first holds the second.",
     .example = "model.num_moe_experts=4 model.cuda_graph_impl=transformer_engine "
                "model.cuda_graph_modules=[moe,moe_router] model.use_te_rng_tracker=true "
                "model.moe_expert_capacity_factor=1 model.moe_pad_expert_input_to_capacity=true",
     .judge = judge_moe_and_router},
    {.id = "TC-85",
     .when = "the scope moe_preprocess without moe_router",
     .then = "refused",
     .why = "It goes on from what the router's graph leaves.",
     .example = "model.num_moe_experts=4 model.cuda_graph_impl=transformer_engine "
                "model.cuda_graph_modules=[moe_preprocess] model.use_te_rng_tracker=true",
     .judge = judge_preprocess_alone},
    {.id = "TC-86",
     .when = "the scope moe or moe_router without experts, or with one",
     .then = "refused",
     .why = "There is no router.",
     .example = "model.cuda_graph_impl=transformer_engine model.cuda_graph_modules=[moe_router] "
                "model.use_te_rng_tracker=true",
     .judge = judge_moe_of_dense},
    {.id = "TC-87",
     .when = "the scope mlp where every layer is MoE",
     .then = "refused",
     .why = "There is no dense feed-forward to capture.",
     .example = "model.num_moe_experts=4 model.cuda_graph_impl=transformer_engine "
                "model.cuda_graph_modules=[mlp] model.use_te_rng_tracker=true",
     .judge = judge_mlp_of_moe},
    {.id = "TC-88",
     .when = "the scope moe, or a whole MoE layer, without both a capacity and padding to it",
     .then = "refused",
     .why = "A graph's shapes are fixed; rows of an expert are only where tokens are dropped above "
            "its capacity and padded below. Without scopes transformer_engine captures the whole "
            "layer, moe included.",
     .example = "model.num_moe_experts=4 model.cuda_graph_impl=transformer_engine "
                "model.cuda_graph_modules=[moe] model.use_te_rng_tracker=true",
     .judge = judge_dropless_moe},
    {.id = "TC-89",
     .when = "the scope moe_preprocess with alltoall and a capacity factor or router padding, "
             "without padding to capacity",
     .then = "refused",
     .why = "Counts then go to the host before the exchange, and a graph cannot wait for the host.",
     .example = "model.num_moe_experts=4 model.cuda_graph_impl=transformer_engine "
                "model.cuda_graph_modules=[moe_router,moe_preprocess] "
                "model.use_te_rng_tracker=true model.moe_expert_capacity_factor=1",
     .judge = judge_preprocess_sync},
    {.id = "TC-91",
     .when = "the scope moe_router, or a whole layer, of transformer_engine with moe recomputed",
     .then = "refused",
     .why = "The recomputation starts at the router, which its graph holds.",
     .example = "model.num_moe_experts=4 model.cuda_graph_impl=transformer_engine "
                "model.cuda_graph_modules=[moe_router] model.use_te_rng_tracker=true "
                "model.recompute_granularity=selective model.recompute_modules=[moe]",
     .judge = judge_recomputed_router},
    {.id = "TC-92",
     .when = "dropout or router jitter in a captured part that is recomputed",
     .then = "refused",
     .why = "The second forward must draw what the first drew, and a graph moves its random state "
            "on at every replay.",
     .example = "model.cuda_graph_impl=transformer_engine model.cuda_graph_modules=[attn] "
                "model.use_te_rng_tracker=true model.attention_dropout=0.1 "
                "model.recompute_granularity=selective model.recompute_modules=[core_attn]",
     .judge = judge_random_recompute},
    {.id = "TC-94",
     .when = "fine-grained offload with moe captured, without warm-up steps or, for a whole "
             "iteration, without a bound on copies under way",
     .then = "refused",
     .why = "What is moved, and when, is learned before the capture and fixed by it.",
     .example = "model.cuda_graph_impl=transformer_engine model.cuda_graph_modules=[attn] "
                "model.use_te_rng_tracker=true model.cuda_graph_warmup_steps=0 "
                "model.fine_grained_activation_offloading=true model.offload_modules=[core_attn]",
     .judge = judge_captured_offload},
};

}  // namespace

std::span<const Rule> graph_scope_rules() { return kGraphScopeRules; }

}  // namespace weft::rules
