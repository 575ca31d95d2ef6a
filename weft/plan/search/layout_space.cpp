#include "weft/plan/search/layout_space.h"

#include <algorithm>

#include "weft/base/check.h"
#include "weft/base/text.h"
#include "weft/derive/derived.h"
#include "weft/derive/gpu.h"
#include "weft/derive/layer_kind.h"
#include "weft/derive/pipeline.h"
#include "weft/plan/cost/workload.h"

namespace weft::plan {
namespace {

using config::Config;
using config::ModelConfig;

constexpr std::int64_t kStagesWithoutLayers = 2;

constexpr std::int64_t kMostTp = 16, kMostVpp = 12, kMostMbs = 64;
constexpr std::int64_t kFewestTokens = 2048;      // tokens of a sequence, if cp > 1
constexpr std::int64_t kMostTokens = 128 * 1024;  // tokens of a micro-batch on a rank

std::vector<std::int64_t> divisors(std::int64_t of, std::int64_t most) {
  std::vector<std::int64_t> all;
  for (std::int64_t d = 1; d <= std::min(of, most); ++d) {
    if (of % d == 0) all.push_back(d);
  }
  return all;
}

std::vector<std::int64_t> powers_of_two(std::int64_t most) {
  std::vector<std::int64_t> all;
  for (std::int64_t d = 1; d <= std::max<std::int64_t>(1, most); d *= 2) all.push_back(d);
  return all;
}

std::vector<RecomputeRung> ladder_of(const PlanAsk& ask) {
  for (const std::string_view key : {"model.recompute_granularity",
                                     "model.recompute_method",
                                     "model.recompute_num_layers",
                                     "model.recompute_modules"}) {
    if (!ask.pinned.contains(std::string(key))) continue;
    const ModelConfig& model = ask.start.model;
    const bool full = model.recompute_granularity == config::RecomputeGranularity::Full;
    return {{.name = "as given",
             .modules = model.recompute_modules.value_or(std::vector<config::RecomputeModule>{}),
             .is_full = full,
             .moves_rows = full && model.experts() > 0,
             .is_given = true}};
  }
  return recompute_ladder(ask.start.model);
}

// Offload rungs; none if the host has no memory.
std::vector<OffloadRung> offloads_of_ask(const PlanAsk& ask) {
  for (const std::string_view key :
       {"model.fine_grained_activation_offloading", "model.offload_modules"}) {
    if (!ask.pinned.contains(std::string(key))) continue;
    return {{.name = "as given", .modules = {}, .is_given = true}};
  }
  std::vector<OffloadRung> ladder = offload_ladder(ask.start.model);
  if (ask.is_safe || ask.hardware.host_room() <= 0) ladder.resize(1);
  return ladder;
}

Hardware hardware_of_ask(const PlanAsk& ask) {
  Hardware hardware = ask.hardware;
  if (ask.is_safe) hardware.memory_gb *= kSafeShare;
  return hardware;
}

}  // namespace

LayoutSpace::LayoutSpace(const PlanAsk& ask)
    : hardware_(hardware_of_ask(ask)),
      routing_(ask.routing),
      writer_(ask.start, ask.pinned, ladder_of(ask), offloads_of_ask(ask)),
      world_(derive::layout_of(ask.start).world),
      batch_(ask.start.train.global_batch_size),
      axes_(axes_of(ask)),
      is_safe_(ask.is_safe) {
  if (ask.counter) counted_ = std::make_unique<MemoryBook>(ask.counter);
}

LayoutAxes LayoutSpace::axes_of(const PlanAsk& ask) const {
  const Config& start = writer_.start();
  const ModelConfig& model = start.model;
  LayoutAxes axes;
  const auto choose = [&](std::string_view key, std::int64_t value, auto all) {
    return writer_.is_pinned(key) ? std::vector{value} : all;
  };
  const auto domain = static_cast<std::int64_t>(hardware_.nvlink_domain);
  axes.tp = choose("model.tensor_model_parallel_size",
                   model.tensor_model_parallel_size,
                   divisors(world_, std::min(kMostTp, domain)));
  axes.pp = choose("model.pipeline_model_parallel_size",
                   model.pipeline_model_parallel_size,
                   divisors(world_, model.num_layers));
  std::vector<std::int64_t> chunks;
  for (std::int64_t vpp = 1; vpp <= kMostVpp; ++vpp) {
    if (vpp <= 6 || vpp % 2 == 0) chunks.push_back(vpp);
  }
  axes.vpp = choose("model.virtual_pipeline_model_parallel_size",
                    model.virtual_pipeline_model_parallel_size.value_or(1),
                    chunks);
  axes.cp = choose("model.context_parallel_size",
                   model.context_parallel_size,
                   powers_of_two(model.seq_length / kFewestTokens));
  const std::int64_t experts = model.experts();
  axes.ep = choose("model.expert_model_parallel_size",
                   model.expert_model_parallel_size,
                   experts > 0 ? divisors(experts, world_) : std::vector<std::int64_t>{1});
  axes.etp = choose("model.expert_tensor_parallel_size",
                    model.expert_shards(),
                    experts > 0 ? powers_of_two(std::min<std::int64_t>(8, domain))
                                : std::vector<std::int64_t>{1});
  axes.mbs =
      choose("train.micro_batch_size", start.train.micro_batch_size, powers_of_two(kMostMbs));
  const bool pins_carrier = writer_.is_pinned("model.moe_token_dispatcher_type") ||
                            writer_.is_pinned("model.moe_flex_dispatcher_backend");
  if (pins_carrier || experts == 0) {
    axes.carriers = {Carrier::Given};
  } else {
    axes.carriers = {Carrier::AllToAll};
    for (const auto& [carrier, backend] :
         {std::pair(Carrier::DeepEp, config::FlexBackend::DeepEp),
          std::pair(Carrier::HybridEp, config::FlexBackend::HybridEp)}) {
      if (derive::supports(backend, start.hardware).value_or(true)) {
        axes.carriers.push_back(carrier);
      }
    }
  }
  for (const StepOrder order : {StepOrder::Plain, StepOrder::Merged, StepOrder::MergedDelayed}) {
    const bool merged = order != StepOrder::Plain, delayed = order == StepOrder::MergedDelayed;
    const auto& overlap = start.comm_overlap;
    if (writer_.is_pinned("comm_overlap.overlap_moe_expert_parallel_comm") &&
        merged != overlap.overlap_moe_expert_parallel_comm) {
      continue;
    }
    if (writer_.is_pinned("comm_overlap.delay_wgrad_compute") &&
        delayed != overlap.delay_wgrad_compute) {
      continue;
    }
    axes.orders.push_back(order);
  }
  const bool pins_state = writer_.is_pinned("ddp.use_distributed_optimizer") ||
                          writer_.is_pinned("optimizer.use_distributed_optimizer");
  const bool shares =
      start.ddp.use_distributed_optimizer || start.optimizer.use_distributed_optimizer;
  axes.states = {StateHolder::Shared, StateHolder::Whole};
  if (pins_state) axes.states = {shares ? StateHolder::Shared : StateHolder::Whole};
  const bool pins_host = writer_.is_pinned("optimizer.optimizer_cpu_offload") ||
                         writer_.is_pinned("optimizer.optimizer_offload_fraction");
  const bool may_go = !ask.is_safe && !pins_host && axes.states.front() == StateHolder::Shared &&
                      !start.ddp.use_megatron_fsdp && hardware_.host_room() > 0;
  axes.most_host_state = may_go ? kStateQuarters : 0;
  const bool pins_graphs = writer_.is_pinned("model.cuda_graph_impl") ||
                           writer_.is_pinned("model.cuda_graph_modules") ||
                           start.model.cuda_graph_impl != config::CudaGraphImpl::None;
  axes.graphs = {Graphs::Scoped, Graphs::None};
  const bool runs_none = hardware_.program == Program::Weft;
  if (runs_none || ask.is_safe) axes.graphs = {Graphs::None};
  if (pins_graphs) axes.graphs = {Graphs::Given};
  axes.numbers.assign(ask.numbers.begin(), ask.numbers.end());
  if (axes.numbers.empty()) axes.numbers = {std::nullopt};
  return axes;
}

LayerMemory LayoutSpace::simulated(const LayoutChoice& choice) const {
  std::string run = base::text("{} {} {} {} {} {} {} {} {}",
                               choice.tp,
                               choice.cp,
                               choice.ep,
                               choice.etp,
                               choice.mbs,
                               static_cast<int>(choice.carrier),
                               static_cast<int>(choice.order),
                               choice.recompute,
                               choice.number ? static_cast<int>(*choice.number) : -1);
  // The number of offloading layers depends on how many a stage can offload.
  if (choice.offload > 0 || writer_.offloads().front().is_given) {
    run += base::text(" {} {} {}", choice.offload, choice.pp, choice.vpp);
  }
  if (choice.graphs == Graphs::Whole) run += " whole";
  return {.layers = simulated_.get(), .run = std::move(run)};
}

std::string LayoutSpace::complaint(const LayoutChoice& shape) const {
  const ModelConfig& model = writer_.start().model;
  const std::int64_t experts = model.experts();
  if (world_ % (shape.tp * shape.cp * shape.pp) != 0) return "GPUs are no multiple of tp*cp*pp";
  if (experts > 0) {
    if (world_ % (shape.ep * shape.etp * shape.pp) != 0) return "GPUs are no multiple of ep*etp*pp";
    if (experts % shape.ep != 0) return "experts are no multiple of ep";
    if (model.expert_width() % shape.etp != 0) return "the experts' width is no multiple of etp";
    if (shape.etp > 1 && model.add_bias_linear) return "experts with a bias are not cut (etp > 1)";
  }
  if (model.num_attention_heads % shape.tp != 0) return "heads are no multiple of tp";
  const std::int64_t groups = model.query_groups();
  if (!model.multi_latent_attention && groups % shape.tp != 0 && shape.tp % groups != 0) {
    return "key and value heads are neither a multiple nor a divisor of tp";
  }
  if (shape.cp > 1 && model.seq_length % (2 * shape.cp) != 0) {
    return "the sequence is no multiple of 2*cp";
  }
  const std::int64_t dp = world_ / (shape.tp * shape.cp * shape.pp);
  if (batch_ % (shape.mbs * dp) != 0) return "the batch is no multiple of mbs*dp";
  const std::int64_t instances = writer_.start().ddp.num_distributed_optimizer_instances;
  const std::int64_t edp = world_ / (shape.ep * shape.etp * shape.pp);
  if (shape.state == StateHolder::Shared &&
      (dp * shape.cp % instances != 0 || edp % instances != 0)) {
    return "dp*cp and edp are no multiples of the optimizer's instances";
  }
  const std::int64_t tokens = shape.mbs * model.seq_length / shape.cp;
  if (tokens % shape.tp != 0) return "tokens of a micro-batch are no multiple of tp";
  if (shape.mbs > 1 && tokens > kMostTokens) {
    return "more than 128 Ki tokens in a micro-batch of a rank";
  }
  if (model.moe_layers() < model.num_layers && model.dense_width() % shape.tp != 0) {
    return "the feed-forward's width is no multiple of tp";
  }
  const std::int64_t shared = derive::shared_expert_width(model);
  if (shared % shape.tp != 0) return "the shared experts' width is no multiple of tp";
  if (shape.pp == 1 && shape.vpp > 1) return "chunks (vpp > 1) need a pipeline";
  // The embedding and the loss may each have a stage of their own.
  if (shape.pp * shape.vpp > model.num_layers + kStagesWithoutLayers) {
    return "more stages than layers";
  }
  const std::int64_t micro_batches = batch_ / (shape.mbs * dp);
  if (shape.vpp > 1 && micro_batches % shape.pp != 0) {
    return "with chunks (vpp > 1), micro-batches are a multiple of pp";
  }
  return "";
}

LayoutSpace::Shapes LayoutSpace::shapes() const {
  Shapes found;
  LayoutChoice shape;
  // Outer axes first: if they fail, inner values are not tried and count once.
  const auto each = [&](const std::vector<std::int64_t>& values,
                        std::int64_t LayoutChoice::*field,
                        const auto& inner) {
    for (const std::int64_t value : values) {
      shape.*field = value;
      inner();
    }
  };
  const auto judge_shape = [&] {
    std::string why = complaint(shape);
    if (why.empty()) {
      found.all.push_back(shape);
    } else {
      ++found.refused[std::move(why)];
    }
  };
  each(axes_.tp, &LayoutChoice::tp, [&] {
    each(axes_.pp, &LayoutChoice::pp, [&] {
      each(axes_.cp, &LayoutChoice::cp, [&] {
        if (world_ % (shape.tp * shape.pp * shape.cp) != 0) return;
        each(axes_.ep, &LayoutChoice::ep, [&] {
          each(axes_.etp, &LayoutChoice::etp, [&] {
            if (world_ % (shape.ep * shape.etp * shape.pp) != 0) return;
            each(axes_.vpp, &LayoutChoice::vpp, [&] {
              if (shape.vpp > 1 && shape.pp == 1) return;
              each(axes_.mbs, &LayoutChoice::mbs, judge_shape);
            });
          });
        });
      });
    });
  });
  // The pipeline's own rules check the stages, once per pair of sizes.
  std::map<std::pair<std::int64_t, std::int64_t>, std::string> stages;
  std::erase_if(found.all, [&](const LayoutChoice& each_shape) {
    const auto sizes = std::pair(each_shape.pp, each_shape.vpp);
    auto known = stages.find(sizes);
    if (known == stages.end()) {
      const auto complaints = derive::stages_of(writer_.config_of(each_shape).model).complaints;
      known = stages.emplace(sizes, complaints.empty() ? "" : complaints.front()).first;
    }
    if (known->second.empty()) return false;
    ++found.refused[known->second];
    return true;
  });
  return found;
}

bool LayoutSpace::tokens_travel(const LayoutChoice& shape) const {
  return writer_.start().model.experts() > 0 && shape.ep * shape.etp > 1;
}

std::vector<Carrier> LayoutSpace::carriers_of(const LayoutChoice& shape) const {
  if (axes_.carriers.front() == Carrier::Given) return axes_.carriers;
  if (!tokens_travel(shape)) return {Carrier::AllToAll};
  const auto domain = static_cast<std::int64_t>(hardware_.nvlink_domain);
  std::vector<Carrier> carriers = axes_.carriers;
  // If NVLink joins more than a machine, hybridep stays inside the domain (F14).
  const bool is_joined = hardware_.nvlink_domain > hardware_.gpus_per_node;
  if (is_joined && shape.ep > domain) std::erase(carriers, Carrier::HybridEp);
  return carriers;
}

std::vector<StepOrder> LayoutSpace::orders_of(const LayoutChoice& shape) const {
  if (axes_.orders.size() == 1) return axes_.orders;
  const ModelConfig& model = writer_.start().model;
  const bool can = tokens_travel(shape) && shape.ep > 1 && derive::mtp_layers(model) <= 1;
  std::vector<StepOrder> orders = axes_.orders;
  if (!can) std::erase_if(orders, [](StepOrder order) { return order != StepOrder::Plain; });
  return orders;
}

bool LayoutSpace::order_allows(StepOrder order, std::size_t rung) const {
  if (order == StepOrder::Plain) return true;
  return !writer_.ladder().at(rung).moves_rows || writer_.start().runtime.recompute_under_overlap;
}

bool LayoutSpace::captures_whole_step(const LayoutChoice& choice) const {
  const ModelConfig& model = writer_.start().model;
  const DType number = choice.number.value_or(number_of(model));
  return number == DType::MXFP8 && choice.carrier == Carrier::HybridEp && model.moe_grouped_gemm &&
         !is_offloading(choice) && !writer_.ladder().at(choice.recompute).moves_rows;
}

std::vector<Graphs> LayoutSpace::graphs_of(const LayoutChoice& choice) const {
  const bool captures = axes_.graphs.front() == Graphs::Scoped;
  if (captures && writer_.ladder().at(choice.recompute).is_full) return {Graphs::None};
  std::vector<Graphs> graphs = axes_.graphs;
  if (captures && captures_whole_step(choice)) graphs.insert(graphs.begin(), Graphs::Whole);
  return graphs;
}

std::vector<std::size_t> LayoutSpace::offloads_of(std::size_t rung) const {
  std::vector<std::size_t> all{0};
  for (std::size_t offload = 1; offload < writer_.offloads().size(); ++offload) {
    if (writer_.offloaded(offload, rung) != writer_.offloaded(all.back(), rung)) {
      all.push_back(offload);
    }
  }
  return all;
}

LayoutChoice LayoutSpace::most_frugal(const LayoutChoice& shape) const {
  LayoutChoice frugal = shape;
  frugal.carrier = carriers_of(shape).front();
  frugal.order = orders_of(shape).front();
  frugal.state = axes_.states.front();
  frugal.recompute = writer_.ladder().size() - 1;
  while (frugal.recompute > 0 && !order_allows(frugal.order, frugal.recompute)) --frugal.recompute;
  frugal.number = axes_.numbers.back();
  frugal.graphs = graphs_of(frugal).front();
  return frugal;
}

LayoutChoice LayoutSpace::most_offloaded(const LayoutChoice& shape) const {
  LayoutChoice most = most_frugal(shape);
  most.offload = offloads_of(most.recompute).back();
  most.host_state = axes_.most_host_state;
  return most;
}

}  // namespace weft::plan
