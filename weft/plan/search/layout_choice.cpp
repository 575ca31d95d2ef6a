#include "weft/plan/search/layout_choice.h"

#include <algorithm>
#include <cmath>

#include "weft/base/casts.h"
#include "weft/base/check.h"
#include "weft/derive/flops.h"
#include "weft/derive/layer_kind.h"

namespace weft::plan {
namespace {

using base::number;
using config::Config;
using config::ModelConfig;
using config::RecomputeModule;

std::string module_words(const std::vector<RecomputeModule>& modules) {
  std::string words;
  for (const RecomputeModule module : modules) {
    if (!words.empty()) words += ", ";
    words += config::word(module);
  }
  return words;
}

RecomputeRung selective(std::vector<RecomputeModule> modules) {
  RecomputeRung rung{.name = module_words(modules), .modules = std::move(modules)};
  rung.moves_rows = std::ranges::find(rung.modules, RecomputeModule::Moe) != rung.modules.end();
  return rung;
}

// One layer per stage, with the loss alone in the last stage. With one more stage the embedding is
// alone in the first. Matches Megatron's account_for_embedding_in_pipeline_split and
// account_for_loss_in_pipeline_split.
std::string single_layers(std::int64_t layers, std::int64_t stages) {
  std::string layout = stages > layers + 1 ? "E|t" : "Et";
  for (std::int64_t i = 1; i < layers; ++i) layout += "|t";
  return layout + "|L";
}

}  // namespace

std::string_view word(Carrier carrier) {
  switch (carrier) {
    case Carrier::Given:
      return "";
    case Carrier::AllToAll:
      return "alltoall";
    case Carrier::DeepEp:
      return "deepep";
    case Carrier::HybridEp:
      return "hybridep";
  }
  UNREACHABLE("carrier {}", static_cast<int>(carrier));
}

// Ladder of modules by falling gain per recompute time: cheap work with large results first
// (docs/plan.md).
std::vector<RecomputeRung> recompute_ladder(const ModelConfig& model) {
  std::vector<RecomputeRung> ladder{{.name = "none", .modules = {}}};
  std::vector<RecomputeModule> modules;
  const auto add = [&](RecomputeModule module) {
    modules.push_back(module);
    ladder.push_back(selective(modules));
  };
  const bool has_experts = model.experts() > 0;
  if (has_experts && model.moe_grouped_gemm) add(RecomputeModule::MoeAct);
  add(RecomputeModule::Layernorm);
  if (model.multi_latent_attention) add(RecomputeModule::MlaUpProj);
  if (model.moe_layers() < model.num_layers) add(RecomputeModule::Mlp);
  if (has_experts) {
    std::erase(modules, RecomputeModule::MoeAct);
    add(RecomputeModule::Moe);
  }
  ladder.push_back({.name = "full", .modules = {}, .is_full = true, .moves_rows = has_experts});
  return ladder;
}

double head_in_layers(const ModelConfig& model) {
  const double mtp = number(derive::mtp_layers(model));
  const double head = 6 * number(model.hidden_size) * number(model.vocab_size);
  const double layers = derive::flops_per_token(model) - (1 + mtp) * head;
  return head / std::max(1.0, layers / (number(model.num_layers) + mtp));
}

std::string balanced_layout(const ModelConfig& model,
                            std::int64_t pp,
                            std::int64_t stages,
                            double head) {
  if (stages <= 1) return "";
  const std::int64_t mtp = derive::mtp_layers(model), layers = model.num_layers;
  if (stages > layers) return single_layers(layers, stages);
  const double tail = number(mtp) + number(1 + mtp) * head;
  const double each = (number(layers) + tail) / number(stages);
  const auto last =
      std::clamp<std::int64_t>(std::llround(each - tail), 0, std::max<std::int64_t>(0, layers));
  const std::int64_t rest = layers - last, even = rest / (stages - 1);
  std::vector<std::int64_t> dealt(base::at(stages), even);
  dealt.back() = last;
  // Remaining layers go to the first stages, and to the last rank's stages last.
  std::int64_t left = rest % (stages - 1);
  for (const bool of_last_rank : {false, true}) {
    for (std::int64_t s = 0; s + 1 < stages && left > 0; ++s) {
      if ((s % pp == pp - 1) != of_last_rank) continue;
      ++dealt[base::at(s)];
      --left;
    }
  }
  const bool is_equal = std::ranges::all_of(dealt, [&](std::int64_t n) { return n == dealt[0]; });
  if (is_equal && mtp == 0) return "";
  std::string layout = "E";
  for (std::size_t s = 0; s < dealt.size(); ++s) {
    if (s > 0) layout += "|";
    layout += std::string(base::at(dealt[s]), 't');
  }
  return layout + std::string(base::at(mtp), 'm') + "L";
}

LayoutWriter::LayoutWriter(Config start,
                           PinnedKeys pinned,
                           std::vector<RecomputeRung> ladder,
                           std::vector<OffloadRung> offloads)
    : start_(std::move(start)),
      pinned_(std::move(pinned)),
      ladder_(std::move(ladder)),
      offloads_(std::move(offloads)),
      head_in_layers_(head_in_layers(start_.model)) {}

std::vector<config::OffloadModule> LayoutWriter::offloaded(std::size_t offload,
                                                           std::size_t recompute) const {
  return modules_beside(offloads_.at(offload), ladder_.at(recompute), start_.model);
}

Config LayoutWriter::config_of(const LayoutChoice& choice) const {
  Config config = start_;
  set_shape(choice, config);
  set_modes(choice, config);
  return config;
}

void LayoutWriter::set_shape(const LayoutChoice& choice, Config& config) const {
  ModelConfig& model = config.model;
  model.tensor_model_parallel_size = choice.tp;
  model.pipeline_model_parallel_size = choice.pp;
  model.context_parallel_size = choice.cp;
  model.expert_model_parallel_size = choice.ep;
  if (model.experts() > 0) model.expert_tensor_parallel_size = choice.etp;
  config.train.micro_batch_size = choice.mbs;
  if (!is_pinned("model.sequence_parallel")) model.sequence_parallel = choice.tp > 1;
  // Dense models exchange tensor-parallel data under the products.
  if (!is_pinned("comm_overlap.tp_comm_overlap")) {
    config.comm_overlap.tp_comm_overlap = choice.tp > 1 && model.experts() == 0;
  }
  model.virtual_pipeline_model_parallel_size.reset();
  if (choice.vpp > 1) model.virtual_pipeline_model_parallel_size = choice.vpp;
  for (const std::string_view own : {"model.pipeline_model_parallel_layout",
                                     "model.num_layers_in_first_pipeline_stage",
                                     "model.num_layers_in_last_pipeline_stage",
                                     "model.account_for_embedding_in_pipeline_split",
                                     "model.account_for_loss_in_pipeline_split"}) {
    if (is_pinned(own)) return;
  }
  model.num_layers_in_first_pipeline_stage.reset();
  model.num_layers_in_last_pipeline_stage.reset();
  model.account_for_embedding_in_pipeline_split = false;
  model.account_for_loss_in_pipeline_split = false;
  model.pipeline_model_parallel_layout =
      balanced_layout(model, choice.pp, choice.pp * choice.vpp, head_in_layers_);
}

void LayoutWriter::set_modes(const LayoutChoice& choice, Config& config) const {
  ModelConfig& model = config.model;
  model.moe_flex_dispatcher_backend = start_.model.moe_flex_dispatcher_backend;
  switch (choice.carrier) {
    case Carrier::Given:
      model.moe_token_dispatcher_type = start_.model.moe_token_dispatcher_type;
      break;
    case Carrier::AllToAll:
      model.moe_token_dispatcher_type = config::Dispatcher::AllToAll;
      model.moe_flex_dispatcher_backend.reset();
      break;
    case Carrier::DeepEp:
      model.moe_token_dispatcher_type = config::Dispatcher::Flex;
      model.moe_flex_dispatcher_backend = config::FlexBackend::DeepEp;
      break;
    case Carrier::HybridEp:
      model.moe_token_dispatcher_type = config::Dispatcher::Flex;
      model.moe_flex_dispatcher_backend = config::FlexBackend::HybridEp;
      break;
  }
  const bool merged = choice.order != StepOrder::Plain;
  set_queues(choice, config);
  config.comm_overlap.overlap_moe_expert_parallel_comm = merged;
  config.comm_overlap.delay_wgrad_compute = choice.order == StepOrder::MergedDelayed;
  model.moe_shared_expert_overlap = !merged && start_.model.moe_shared_expert_overlap;
  // The interleaved order needs a number of chunks, which may be 1.
  if (choice.vpp == 1) {
    model.virtual_pipeline_model_parallel_size.reset();
    if (merged && choice.pp > 1) model.virtual_pipeline_model_parallel_size = 1;
  }
  const bool shared = choice.state == StateHolder::Shared;
  config.ddp.use_distributed_optimizer = shared;
  config.optimizer.use_distributed_optimizer = shared;
  if (!shared) config.ddp.num_distributed_optimizer_instances = 1;
  if (choice.number) set_number(config, *choice.number);
  set_graphs(choice.graphs, config);
  set_recompute(choice, model);
  set_host(choice, config);
}

// Sets the GPU's number of launch queues. Tensor- and context-parallel ranks rely on the order
// within one; merged orders need many (rules TC-77 and W54).
void LayoutWriter::set_queues(const LayoutChoice& choice, Config& config) const {
  constexpr std::int64_t kMany = 32;
  if (is_pinned("hardware.cuda_device_max_connections")) return;
  const bool wants_one = choice.order == StepOrder::Plain && (choice.tp > 1 || choice.cp > 1);
  config.hardware.cuda_device_max_connections = wants_one ? 1 : kMany;
}

void LayoutWriter::set_host(const LayoutChoice& choice, Config& config) const {
  const bool pins_state = is_pinned("optimizer.optimizer_cpu_offload") ||
                          is_pinned("optimizer.optimizer_offload_fraction");
  // Unsharded optimizer state has no formats of its own (rule W120).
  constexpr std::string_view kAware = "optimizer.use_precision_aware_optimizer";
  const bool may_be_aware = choice.state == StateHolder::Shared || is_pinned(kAware);
  config.optimizer.use_precision_aware_optimizer =
      start_.optimizer.use_precision_aware_optimizer && may_be_aware;
  if (!pins_state) set_host_state(config, choice.host_state);
  if (offloads_.at(choice.offload).is_given) return;
  config.model.offload_modules = offloaded(choice.offload, choice.recompute);
  config.model.fine_grained_activation_offloading = !config.model.offload_modules.empty();
}

std::vector<RecomputeModule> LayoutWriter::recomputed(const LayoutChoice& choice) const {
  std::vector<RecomputeModule> modules = ladder_.at(choice.recompute).modules;
  // Fused experts have their activation inside the products, and the stash keeps their rows.
  if (choice.graphs == Graphs::Whole) std::erase(modules, RecomputeModule::MoeAct);
  return modules;
}

void LayoutWriter::set_recompute(const LayoutChoice& choice, ModelConfig& model) const {
  const RecomputeRung& rung = ladder_.at(choice.recompute);
  if (rung.is_given) return;
  model.recompute_granularity.reset();
  model.recompute_method.reset();
  model.recompute_num_layers.reset();
  model.recompute_modules.reset();
  if (rung.is_full) {
    model.recompute_granularity = config::RecomputeGranularity::Full;
    model.recompute_method = config::RecomputeMethod::Uniform;
    model.recompute_num_layers = 1;
  } else if (std::vector<RecomputeModule> modules = recomputed(choice); !modules.empty()) {
    model.recompute_granularity = config::RecomputeGranularity::Selective;
    model.recompute_modules = std::move(modules);
  }
}

void LayoutWriter::set_graphs(Graphs graphs, Config& config) const {
  constexpr double kRowBudget = 1.5;  // as in published runs of the whole step
  ModelConfig& model = config.model;
  const bool is_whole = graphs == Graphs::Whole;
  if (graphs != Graphs::Given) {
    model.use_transformer_engine_op_fuser =
        is_whole || start_.model.use_transformer_engine_op_fuser;
    model.moe_paged_stash = is_whole || start_.model.moe_paged_stash;
    model.moe_expert_rank_capacity_factor = start_.model.moe_expert_rank_capacity_factor;
    if (is_whole) model.moe_expert_rank_capacity_factor = kRowBudget;
    // The check reads the loss on the host, which a captured step cannot do.
    config.rerun_state_machine.check_for_nan_in_loss =
        !is_whole && start_.rerun_state_machine.check_for_nan_in_loss;
  }
  switch (graphs) {
    case Graphs::Given:
      return;
    case Graphs::None:
      model.cuda_graph_impl = config::CudaGraphImpl::None;
      model.cuda_graph_modules.clear();
      model.use_te_rng_tracker = start_.model.use_te_rng_tracker;
      config.rng.te_rng_tracker = start_.rng.te_rng_tracker;
      return;
    case Graphs::Whole:
      model.cuda_graph_impl = config::CudaGraphImpl::FullIteration;
      model.cuda_graph_modules.clear();
      model.use_te_rng_tracker = true;
      config.rng.te_rng_tracker = true;
      return;
    case Graphs::Scoped:
      model.cuda_graph_impl = config::CudaGraphImpl::TransformerEngine;
      model.cuda_graph_modules = graph_scopes(model);
      model.use_te_rng_tracker = true;
      config.rng.te_rng_tracker = true;
      return;
  }
}

std::vector<config::CudaGraphScope> graph_scopes(const ModelConfig& model) {
  using Scope = config::CudaGraphScope;
  if (model.experts() == 0) return {Scope::Attn, Scope::Mlp};
  return {Scope::Attn, Scope::MoeRouter, Scope::MoePreprocess};
}

void set_number(Config& config, DType number) {
  ModelConfig& model = config.model;
  const bool is_fp32 = number == DType::F32;
  model.bf16 = !is_fp32;
  model.fp16 = false;
  model.params_dtype = is_fp32 ? base::DType::F32 : base::DType::BF16;
  config.optimizer.bf16 = !is_fp32;
  model.fp8.reset();
  model.fp4.reset();
  if (number == DType::F8E4M3) {
    model.fp8 = config::Fp8Format::Hybrid;
    model.fp8_recipe = config::Fp8Recipe::Tensorwise;
  } else if (number == DType::MXFP8) {
    model.fp8 = config::Fp8Format::E4m3;
    model.fp8_recipe = config::Fp8Recipe::Mxfp8;
  } else if (number == DType::NVFP4) {
    model.fp4 = config::Fp4Format::E2m1;
  }
}

}  // namespace weft::plan
