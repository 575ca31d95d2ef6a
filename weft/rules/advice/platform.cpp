// Suggestions from a platform and its published runs.
#include "weft/base/text.h"
#include "weft/rules/advice/facts.h"
#include "weft/rules/advice/topics.h"
#include "weft/rules/captured.h"
#include "weft/rules/chosen.h"

namespace weft::rules {

using namespace config;
namespace {

using base::text;

std::optional<Note> router_in_fp32(const Config& config) {
  const bool gpu = config.hardware.gpu || config.hardware.compute_capability;
  if (!gpu || config.model.experts() < 2 || config.model.moe_router_dtype == base::DType::F32) {
    return {};
  }
  if (config.model.moe_router_dtype) return {};
  return note("model.moe_router_dtype",
              text("model.moe_router_dtype is null: with {} experts Megatron would score them in "
                   "the dtype of the activations",
                   config.model.experts()),
              "set model.moe_router_dtype=fp32");
}

std::optional<Note> dispatcher_of_platform(const Config& config) {
  const RunFacts run = facts_of(config);
  if (!config.hardware.gpu || run.ep <= 1) return {};
  const bool flex = config.model.moe_token_dispatcher_type == Dispatcher::Flex;
  const bool hybrid = flex && config.model.moe_flex_dispatcher_backend == FlexBackend::HybridEp;
  if (run.domain == kRackDomain && !hybrid) {
    return note("model.moe_flex_dispatcher_backend",
                text("{} has 72 GPUs in one domain", word(*config.hardware.gpu)),
                "try flex with hybridep first, then compare");
  }
  if (run.domain == kRackDomain || flex || run.ep <= run.domain) return {};
  return note(
      "model.moe_token_dispatcher_type",
      text("alltoall sends a token once for each of its {} experts, between machines too (ep = {}, "
           "{} GPUs a machine)",
           config.model.moe_router_topk,
           run.ep,
           run.domain),
      "compare flex with deepep and with hybridep; hardware narrows the choice, it does not "
      "make it");
}

std::optional<Note> fp8_of_platform(const Config& config) {
  if (!config.hardware.gpu || !config.model.fp8) return {};
  const bool blackwell = is_blackwell(config);
  const Fp8Recipe good = blackwell ? Fp8Recipe::Mxfp8 : Fp8Recipe::Blockwise;
  if (config.model.fp8_recipe == good) return {};
  return note("model.fp8_recipe",
              text("model.fp8_recipe = {} on {}",
                   word(config.model.fp8_recipe),
                   word(*config.hardware.gpu)),
              text("compare {}, which the published runs of this platform use", word(good)));
}

std::optional<Note> graph_scopes(const Config& config) {
  const ModelConfig& model = config.model;
  const bool partial = model.cuda_graph_impl == CudaGraphImpl::TransformerEngine;
  if (!partial || model.experts() < 2 || model.moe_expert_capacity_factor) return {};
  if (captures(model, CudaGraphScope::MoeRouter) &&
      captures(model, CudaGraphScope::MoePreprocess)) {
    return {};
  }
  return note("model.cuda_graph_modules",
              "a dropless MoE layer has shapes that change, so only parts of it can be captured",
              "start with model.cuda_graph_modules=[moe_router,moe_preprocess], then add attn");
}

std::optional<Note> iteration_of_dropless(const Config& config) {
  const ModelConfig& model = config.model;
  if (model.cuda_graph_impl != CudaGraphImpl::FullIteration || model.experts() < 2) return {};
  if (drops_and_pads(model) || model.moe_expert_rank_capacity_factor) return {};
  return note(
      "model.cuda_graph_impl",
      "model.cuda_graph_impl = full_iteration captures the experts of a dropless MoE, whose "
      "rows change from step to step: nothing bounds them",
      "drop and pad (model.moe_expert_capacity_factor and "
      "model.moe_pad_expert_input_to_capacity=true), or give a rank a budget of rows "
      "(hybridep with model.moe_expert_rank_capacity_factor=1.5)");
}

std::optional<Note> graphs_without_profile(const Config& config) {
  const ModelConfig& model = config.model;
  if (model.cuda_graph_impl == CudaGraphImpl::None || model.experts() < 2) return {};
  if (model.moe_token_dispatcher_type != Dispatcher::AllToAll) return {};
  return note(
      "model.cuda_graph_impl",
      "CUDA graphs help where launches leave gaps; with alltoall the step waits for the wire",
      "profile first, and exclude the step that captures from the timing");
}

std::optional<Note> benchmark_only(const Config& config) {
  const ModelConfig& model = config.model;
  if (!model.moe_router_force_load_balancing && !model.moe_router_force_biased) return {};
  return note(model.moe_router_force_load_balancing ? "model.moe_router_force_load_balancing"
                                                    : "model.moe_router_force_biased",
              "tokens are routed at random: the run measures speed and learns nothing",
              "label its numbers benchmark-only");
}

constexpr Advice kPlatformAdvice[] = {
    {.id = "A5",
     .when = "experts on GPUs and model.moe_router_dtype is null",
     .then = "use fp32",
     .why = "Scores of many experts are close; in bf16 the choice between them is noise. Weft's "
            "router is "
            "fp32 always, Megatron's is not.",
     .measured =
         "bf16 keeps 8 bits: with 128 experts neighbouring probabilities (1/128) differ by less "
         "than its step.",
     .example = "hardware.gpu=h100 model.num_moe_experts=16 model.bf16=true",
     .judge = router_in_fp32},
    {.id = "A9",
     .when = "a dispatcher that the platform's published runs do not prefer",
     .then = "compare",
     .why = "alltoall sends a token once an expert. deepep and hybridep send it once to another "
            "machine and pass it on there, and inside their machine once to a rank. "
            "Inside an "
            "NVL72 domain hybridep is the one to begin with.",
     .measured =
         "Dispatch of 4096 tokens, 256 experts, top-8, EP16: H100 alltoall 5774 us, HybridEP 1485 "
         "us; GB200 743 and 578 us. Qwen3-235B on 256 H100 is published with alltoall + overlap.",
     .example = "hardware.gpu=gb200 model.num_moe_experts=16 model.expert_model_parallel_size=16 "
                "model.moe_router_dtype=fp32 model.bf16=true train.global_batch_size=16",
     .judge = dispatcher_of_platform},
    {.id = "A10",
     .when = "an fp8 recipe other than blockwise on Hopper or mxfp8 on Blackwell",
     .then = "compare the platform's",
     .why = "Block scales are what each generation's tensor cores are made for.",
     .measured =
         "DeepSeek-V3: H100 with blockwise 368 TFLOP/s a GPU, GB200 with mxfp8 1048. fp8 makes "
         "linear layers 1.2 to 1.5 times faster.",
     .example = "hardware.gpu=b200 model.bf16=true model.fp8=hybrid model.fp8_recipe=tensorwise",
     .judge = fp8_of_platform},
    {.id = "A11",
     .when = "partial CUDA graphs on a dropless MoE without moe_router and moe_preprocess",
     .then = "start with these scopes",
     .why = "Row counts change from step to step, so experts cannot be captured; router and "
            "preprocessing "
            "have fixed shapes and many launches.",
     .measured =
         "Qwen3-30B-A3B, TP2 PP2 EP4, 2 H100 machines, attn + router + preprocess: 623 -> 484 ms.",
     .example =
         "hardware.gpu=h100 model.bf16=true model.num_moe_experts=4 "
         "model.moe_router_dtype=fp32 model.cuda_graph_impl=transformer_engine "
         "model.cuda_graph_modules=[attn] model.use_te_rng_tracker=true rng.te_rng_tracker=true",
     .judge = graph_scopes},
    {.id = "A20",
     .when = "full-iteration CUDA graphs on a dropless MoE without a budget of rows",
     .then = "drop and pad, or set model.moe_expert_rank_capacity_factor",
     .why = "A graph's shapes are fixed when it is captured. Padding to a capacity fixes the rows "
            "of every expert, a budget those of a rank; without either the captured iteration fits "
            "the rows of one step only.",
     .measured = "Megatron's recipes capture whole iterations with drop-and-pad, or dropless "
                 "with a paged stash and a budget of 1.5 times the mean.",
     .example = "hardware.gpu=h100 model.bf16=true model.num_moe_experts=4 "
                "model.moe_router_dtype=fp32 model.cuda_graph_impl=full_iteration "
                "model.use_te_rng_tracker=true rng.te_rng_tracker=true "
                "rerun_state_machine.check_for_nan_in_loss=false",
     .judge = iteration_of_dropless},
    {.id = "A12",
     .when = "CUDA graphs with the alltoall dispatcher",
     .then = "profile first",
     .why = "Graphs remove launch gaps. A step that waits for communication has none.",
     .measured = "Qwen3-30B-A3B, H100, alltoall: replay 42.00 s, eager 41.36 s.",
     .example = "hardware.gpu=h100 model.bf16=true model.num_moe_experts=4 "
                "model.moe_router_dtype=fp32 model.cuda_graph_impl=transformer_engine "
                "model.cuda_graph_modules=[moe_router,moe_preprocess] "
                "model.use_te_rng_tracker=true rng.te_rng_tracker=true",
     .judge = graphs_without_profile},
    {.id = "A18",
     .when = "forced balance or imbalance",
     .then = "benchmark-only",
     .why = "Numbers of forced routing are an upper bound for those of a trained router.",
     .measured = "All published MoE throughputs of Megatron are force-balanced and dropless.",
     .example = "model.num_moe_experts=4 model.moe_router_force_load_balancing=true",
     .judge = benchmark_only},
};

}  // namespace

std::span<const Advice> platform_advice() { return kPlatformAdvice; }

}  // namespace weft::rules
