#include "tests/train/engine_cases_support.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>

namespace weft::train {

using config::Config;
using config::Dispatcher;
using config::FlexBackend;
using config::LoadBalancing;
using schedule::Part;
using schedule::Piece;

namespace {

// Copy of `config`, modified by `change`.
template <typename Change>
Config with(Config config, const Change& change) {
  change(config);
  return config;
}

void to_bf16(Config& config) { config.model.params_dtype = base::DType::BF16; }

void to_fused(Config& config) {
  config.model.apply_rope_fusion = true;
  config.model.cross_entropy_loss_fusion = true;
}

void to_slices(Config& config) {
  to_overlap(config);
  config.comm_overlap.moe_token_slices = 3;
}

void to_dropping(Config& config) {
  config.model.moe_expert_capacity_factor = 0.6;
  config.model.moe_token_drop_policy = config::DropPolicy::Position;
}

void to_padding(Config& config) {
  config.model.moe_expert_capacity_factor = 0.6;
  config.model.moe_pad_expert_input_to_capacity = true;
}

void to_shared(Config& config) {
  config.model.moe_shared_expert_intermediate_size = 20;
  config.model.moe_shared_expert_gate = true;
}

void to_shared_overlap(Config& config) {
  to_shared(config);
  config.model.moe_shared_expert_overlap = true;
  config.model.overlap_dispatch_backward_with_experts_wgrad = true;
}

// Groups, biases, noise and all losses of a router.
void to_routing(Config& config) {
  config.model.moe_router_score_function = config::ScoreFunction::Sigmoid;
  config.model.moe_router_num_groups = 4;
  config.model.moe_router_group_topk = 2;
  config.model.moe_router_topk_scaling_factor = 2.5;
  config.model.moe_router_enable_expert_bias = true;
  config.model.moe_router_load_balancing_type = {LoadBalancing::AuxLoss,
                                                 LoadBalancing::SeqAuxLoss,
                                                 LoadBalancing::GlobalAuxLoss};
  config.model.moe_aux_loss_coeff = {0.01, 0.02, 0.03};
  config.model.moe_z_loss_coeff = 0.001;
  config.model.moe_input_jitter_eps = 0.05;
}

void to_dense(Config& config) {
  config.model.num_moe_experts = std::nullopt;
  config.model.moe_ffn_hidden_size = std::nullopt;
  config.model.moe_layer_freq = {1};
}

void to_tied(Config& config) {
  config.model.share_embeddings_and_output_weights = true;
  config.model.pad_token_id = 3;
}

// Buckets that travel under compute.
void to_distributed(Config& config) {
  config.ddp.use_distributed_optimizer = config.optimizer.use_distributed_optimizer = true;
  config.comm_overlap.bucket_size = 3000;
}

void to_instances(Config& config) {
  to_distributed(config);
  config.ddp.num_distributed_optimizer_instances = 2;
}

// Optimizer state in fewer bits: bf16 moments and remainders, or fp16 moments alone.
void to_small_state(Config& config) {
  to_distributed(config);
  to_bf16(config);
  config.optimizer.use_precision_aware_optimizer = true;
  config.optimizer.exp_avg_dtype = config.optimizer.exp_avg_sq_dtype = base::DType::BF16;
}

void to_half_moments(Config& config) {
  to_small_state(config);
  config.optimizer.store_param_remainders = false;
  config.optimizer.exp_avg_dtype = config.optimizer.exp_avg_sq_dtype = base::DType::F16;
}

// Gradients in bf16, and masters in fp16.
void to_small_gradients(Config& config) {
  to_small_state(config);
  config.optimizer.main_grads_dtype = base::DType::BF16;
  config.optimizer.main_params_dtype = base::DType::F16;
}

void to_logits_in_chunks(Config& config) {
  to_bf16(config);
  config.runtime.logits_chunk = 5;
}

void to_tensor_overlap(Config& config) { config.comm_overlap.tp_comm_overlap = true; }

// Sequences split over two ranks, with one way of sharing keys and values.
void to_context(Config& config, config::CpComm kind) {
  config.model.num_attention_heads = 4;
  config.model.num_query_groups = 4;
  config.model.context_parallel_size = 2;
  config.model.cp_comm_type = {kind};
  config.comm_overlap.cp_comm_overlap = true;
}

struct Sending {
  std::string name;
  Dispatcher type = Dispatcher::AllToAll;
  std::optional<FlexBackend> backend = {};
  std::int64_t per_machine = 4;
};

// All ways to move tokens: plain, in overlapped slices, with dropped rows, padded, and within a
// budget, as far as each supports them.
void add_sendings(std::vector<EngineCase>& cases, const Config& base) {
  for (const Sending& sending : {Sending{"AllToAll"},
                                 Sending{"AllGather", Dispatcher::AllGather},
                                 Sending{"DeepEp", Dispatcher::Flex, FlexBackend::DeepEp},
                                 Sending{"HybridEp", Dispatcher::Flex, FlexBackend::HybridEp, 2},
                                 Sending{"OneNode", Dispatcher::Flex, FlexBackend::HybridEp}}) {
    const Config config = with(base, [&](Config& changed) {
      changed.model.moe_token_dispatcher_type = sending.type;
      changed.model.moe_flex_dispatcher_backend = sending.backend;
      changed.runtime.ranks_per_node = sending.per_machine;
    });
    cases.push_back({sending.name, config});
    cases.push_back({sending.name + "Bf16", with(config, to_bf16)});
    cases.push_back({sending.name + "Slices", with(config, to_slices)});
    cases.push_back({sending.name + "Dropping", with(config, to_dropping)});
    if (sending.backend != FlexBackend::DeepEp) {  // does not pad
      cases.push_back({sending.name + "Padding", with(config, to_padding)});
    }
    if (sending.backend != FlexBackend::HybridEp) continue;  // the others have no budget
    for (const auto& [name, factor] : {std::pair{"Exceeded", kTooSmall}, {"Kept", 4.0}}) {
      cases.push_back({sending.name + "Budget" + name, with(config, [&](Config& changed) {
                         changed.model.moe_expert_rank_capacity_factor = factor;
                       })});
    }
  }
}

// Pieces whole, in parts, and recomputed: some of their parts, or all possible ones.
void add_details(std::vector<EngineCase>& cases, const std::string& name, const Config& config) {
  const std::vector<Piece> split{Piece::Attention, Piece::Mlp, Piece::Experts};
  cases.push_back({name, config});
  cases.push_back({name + "Parts", config, {split, {}}});
  cases.push_back({name + "RecomputedParts",
                   config,
                   {split, {{Piece::Attention, Part::Core}, {Piece::Experts, Part::Act}}}});
  cases.push_back({name + "Recomputed",
                   config,
                   {{},
                    {Piece::Attention,
                     Piece::Route,
                     Piece::Permute,
                     Piece::Dispatch,
                     Piece::Mlp,
                     Piece::Experts}}});
}

void spoil_gradients(Engine& engine) {
  constexpr float kStale = std::numeric_limits<float>::quiet_NaN();
  for (const model::Parameter& parameter : engine.parameters().all()) {
    if (parameter.spec.is_trained()) fill(engine, parameter.gradient, kStale);
  }
  const tensor::Tensor& head = engine.parameters().tied_head_gradient();
  if (head.defined()) fill(engine, head, kStale);
}

// The norm covers whole buffers, so padding must be zero.
void expect_zero_padding(Engine& engine) {
  for (const model::Home home : {model::Home::Dense, model::Home::Expert}) {
    std::vector<float> rest = floats_of(engine, engine.parameters().buffer(home).gradients);
    for (const model::Parameter& parameter : engine.parameters().all()) {
      if (parameter.spec.home != home) continue;
      std::fill_n(rest.begin() + parameter.offset, parameter.gradient.elements(), 0.0f);
    }
    EXPECT_EQ(rest, std::vector<float>(rest.size(), 0.0f));
  }
}

// Offloads activations to host memory.
void to_offload(Config& config) {
  using enum config::OffloadModule;
  config.model.fine_grained_activation_offloading = true;
  config.model
      .offload_modules = {CoreAttn, AttnProj, AttnNorm, MlpNorm, QkvLinear, ExpertFc1, MoeAct};
}

// Axes that cut a micro-batch, alone and combined with others. Moments and master weights in host
// memory, in buckets smaller than a parameter.
void to_offloaded(Config& config) {
  config.optimizer.optimizer_cpu_offload = true;
  config.optimizer.optimizer_offload_fraction = 0.6;
  config.optimizer.overlap_cpu_optimizer_d2h_h2d = true;
  config.runtime.optimizer_offload_bucket_size = 1000;
}

void add_shared_batches(std::vector<EngineCase>& cases, const Config& one) {
  using enum config::CpComm;
  using enum config::PipelineSchedule;
  const Config tp = with_layout(one, {.world = 4, .ep = 2, .tp = 2});
  cases.push_back({"TensorParallel", tp});
  cases.push_back({"TensorParallelBf16", with(with(tp, to_overlap), to_bf16)});
  cases.push_back({"TensorParallelShared", with(with(tp, to_shared), to_routing)});
  cases.push_back({"TensorOverlap", with(with(tp, to_shared), to_tensor_overlap)});
  cases.push_back({"TensorOverlapBf16", with(with(tp, to_tensor_overlap), to_bf16)});
  cases.push_back({"TensorParallelNorm", with(tp, [](Config& config) {
                     config.model.qk_layernorm = config::QkNorm::Projection;
                   })});
  cases.push_back({"TensorParallelLatent", with_layout(latent_config(), {.world = 2, .tp = 2})});
  for (const auto& [name, kind] :
       {std::pair{"Ring", P2p}, {"Gather", AllGather}, {"Heads", AllToAll}}) {
    const Config cp = with(with_layout(one, {.world = 4, .ep = 2}),
                           [&](Config& config) { to_context(config, kind); });
    cases.push_back({std::string("Context") + name, cp});
    cases.push_back({std::string("Context") + name + "Bf16", with(cp, to_bf16)});
  }
  const auto folded = [&](config::PipelineSchedule order) {
    const LayoutCase layout{.world = 8,
                            .ep = 2,
                            .tp = 2,
                            .pp = 2,
                            .vpp = order == DualPipeV ? 2 : 1,
                            .schedule = order};
    return with(with_layout(deep_config(), layout),
                [&](Config& config) { to_context(config, P2p); });
  };
  cases.push_back({"Folded", with(folded(Auto), to_distributed)});
  cases.push_back({"FoldedZeroBubble", folded(ZeroBubble)});
  cases.push_back({"FoldedDualPipeV", folded(DualPipeV)});
  const LayoutCase waiting{.world = 4, .tp = 2, .pp = 2, .schedule = ZeroBubble};
  cases.push_back({"ZeroBubble", with(with_layout(deep_config(), waiting), to_tensor_overlap)});
  const Config deep = with_layout(deep_config(), {.world = 4, .ep = 2, .tp = 2});
  cases.push_back({"Offload", with(with(deep, to_offload), to_shared)});
  cases.push_back({"OffloadBf16", with(with(deep, to_offload), to_bf16)});
  cases.push_back(
      {"OffloadOverlap",
       with(with(with_layout(deep_config(), {.world = 2, .ep = 2}), to_overlap), to_offload)});
}

}  // namespace

void PrintTo(const EngineCase& at, std::ostream* out) { *out << at.name; }

StepTotals step_over_stale_gradients(Engine& engine, const StepInput& input) {
  spoil_gradients(engine);
  const StepTotals totals = train_step(engine, input, exec::Tracing::Off);
  expect_zero_padding(engine);
  return totals;
}

void to_overlap(Config& config) {
  config.comm_overlap.overlap_moe_expert_parallel_comm = true;
  config.comm_overlap.delay_wgrad_compute = true;
}

std::vector<EngineCase> engine_cases() {
  const Config one = small_config();
  const Config ep2 = with_layout(one, {.world = 2, .ep = 2});
  const Config dp = with_layout(one, {.world = 4, .ep = 2});
  const Config etp = with_layout(one, {.world = 4, .ep = 2, .etp = 2});
  const Config stages = with_layout(deep_config(), {.world = 4, .ep = 2, .pp = 2, .vpp = 2});
  std::vector<EngineCase> all{
      {"OneRank", one},
      {"OneRankBf16", with(one, to_bf16)},
      {"Threads", with(one, [](Config& config) { config.runtime.threads_per_rank = 2; })},
      {"Dense", with(with_layout(one, {.world = 2}), to_dense)},
      {"Routing", with(dp, to_routing)},
      {"Forced",
       with(ep2, [](Config& config) { config.model.moe_router_force_load_balancing = true; })},
      {"Fused", with(one, to_fused)},
      {"FusedBf16", with(with(dp, to_fused), to_bf16)},
      {"Overlapped", with(dp, to_overlap)},
      {"Jitter", with(with(dp, to_overlap), [](Config& config) { config.fabric.jitter_us = 50; })},
      {"Distributed", with(dp, to_distributed)},
      {"NarrowGradients",
       with(with(dp, to_distributed),
            [](Config& config) { config.ddp.grad_reduce_in_fp32 = false; })},
      {"Instances", with(dp, to_instances)},
      {"OffloadedOptimizer", with(one, to_offloaded)},
      {"OffloadedOptimizerBf16", with(with(with(dp, to_distributed), to_offloaded), to_bf16)},
      {"SmallState", with(dp, to_small_state)},
      {"HalfMoments", with(dp, to_half_moments)},
      {"SmallGradients", with(dp, to_small_gradients)},
      {"LogitsInChunks", with(dp, to_logits_in_chunks)},
      {"CutExperts", with(etp, to_routing)},
      {"CutExpertsBf16", with(with(etp, to_overlap), to_bf16)},
      {"Pipeline", stages},
      {"PipelineBf16", with(stages, to_bf16)},
      {"PipelineTied", with(with(stages, to_tied), to_overlap)},
      {"PipelineDistributed", with(with(with(stages, to_tied), to_overlap), to_distributed)}};
  add_shared_batches(all, one);
  add_sendings(all, with_layout(one, {.world = 4, .ep = 4}));
  add_details(all, "Latent", with_layout(latent_config(), {.world = 2, .ep = 2}));
  add_details(all, "Shared", with(ep2, to_shared));
  add_details(all, "SharedOverlapped", with(with(ep2, to_shared_overlap), to_bf16));
  for (EngineCase& at : all) at.config = with_few_micro_batches(std::move(at.config));
  return all;
}

const Outcome& trained_on_cpu(const EngineCase& at) {
  static std::map<std::string, Outcome> by_name;
  if (!by_name.contains(at.name)) {
    by_name[at.name] = train_some(at.config, kEngineSteps, at.detail);
  }
  return by_name.at(at.name);
}

}  // namespace weft::train
