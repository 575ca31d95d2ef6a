#include "weft/plan/price/run_modes.h"

#include <algorithm>

#include "weft/base/check.h"

namespace weft::plan {
namespace {

using config::CudaGraphImpl;
using config::CudaGraphScope;

bool has_scope(const config::ModelConfig& model, CudaGraphScope scope) {
  return std::ranges::find(model.cuda_graph_modules, scope) != model.cuda_graph_modules.end();
}

void add_graphs(const config::ModelConfig& model, std::set<RunMode>& modes) {
  if (model.cuda_graph_impl == CudaGraphImpl::None) return;
  const bool is_whole = model.cuda_graph_impl == CudaGraphImpl::FullIteration ||
                        has_scope(model, CudaGraphScope::FullIteration);
  if (is_whole) {
    modes.insert(RunMode::WholeGraphs);
  } else if (model.cuda_graph_modules.empty() || has_scope(model, CudaGraphScope::Attn)) {
    modes.insert(RunMode::AttentionGraphs);
  } else {
    modes.insert(RunMode::RouterGraphs);
  }
}

}  // namespace

std::string_view word(RunMode mode) {
  switch (mode) {
    case RunMode::Merged:
      return "overlap";
    case RunMode::DelayedWgrad:
      return "delayed wgrad";
    case RunMode::RouterGraphs:
      return "graphs of the router";
    case RunMode::AttentionGraphs:
      return "graphs of attention";
    case RunMode::WholeGraphs:
      return "graphs of the whole step";
    case RunMode::Offload:
      return "activations on the host";
    case RunMode::HostState:
      return "optimizer on the host";
    case RunMode::FullRecompute:
      return "recomputed layers";
    case RunMode::ExpertShards:
      return "etp > 1";
    case RunMode::ContextParallel:
      return "cp > 1";
    case RunMode::FullSharding:
      return "full sharding";
  }
  UNREACHABLE("mode {}", static_cast<int>(mode));
}

std::set<RunMode> modes_of(const config::Config& config) {
  const config::ModelConfig& model = config.model;
  std::set<RunMode> modes;
  const auto add = [&](bool has, RunMode mode) {
    if (has) modes.insert(mode);
  };
  const bool merged = config.comm_overlap.overlap_moe_expert_parallel_comm;
  add(merged, RunMode::Merged);
  add(merged && config.comm_overlap.delay_wgrad_compute, RunMode::DelayedWgrad);
  add_graphs(model, modes);
  add(model.fine_grained_activation_offloading && !model.offload_modules.empty(), RunMode::Offload);
  add(config.optimizer.optimizer_cpu_offload && config.optimizer.optimizer_offload_fraction > 0,
      RunMode::HostState);
  add(model.recompute_granularity == config::RecomputeGranularity::Full, RunMode::FullRecompute);
  add(model.experts() > 0 && model.expert_shards() > 1, RunMode::ExpertShards);
  add(model.context_parallel_size > 1, RunMode::ContextParallel);
  add(config.ddp.use_megatron_fsdp, RunMode::FullSharding);
  return modes;
}

}  // namespace weft::plan
