#include "weft/kernels/cuda/attention/cudnn_plan.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace weft::kernels::cuda {
namespace {

using tensor::Deterministic;

Descriptor make_operation_graph(cudnnHandle_t handle, const Graph& graph) {
  constexpr std::string_view kObject = "the graph of attention";
  Descriptor operations = make_descriptor(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, kObject);
  set_attribute(operations.get(),
                CUDNN_ATTR_OPERATIONGRAPH_HANDLE,
                CUDNN_TYPE_HANDLE,
                1,
                &handle,
                kObject);
  set_attribute(operations.get(),
                CUDNN_ATTR_OPERATIONGRAPH_OPS,
                CUDNN_TYPE_BACKEND_DESCRIPTOR,
                static_cast<std::int64_t>(graph.operations().size()),
                graph.operations().data(),
                kObject);
  return operations;
}

// Engines with their settings, in the library's order: the best first.
std::vector<Descriptor> proposals(cudnnBackendDescriptor_t operations,
                                  cudnnBackendHeurMode_t mode) {
  constexpr std::string_view kObject = "the engines for attention";
  const Descriptor heuristics = make_descriptor(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, kObject);
  set_attribute(heuristics.get(),
                CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH,
                CUDNN_TYPE_BACKEND_DESCRIPTOR,
                1,
                &operations,
                kObject);
  set_attribute(heuristics.get(),
                CUDNN_ATTR_ENGINEHEUR_MODE,
                CUDNN_TYPE_HEUR_MODE,
                1,
                &mode,
                kObject);
  if (try_finalize(heuristics.get(), kObject) == Support::No) return {};
  const auto results = [&](std::int64_t room, cudnnBackendDescriptor_t* to) {
    return get_attribute(heuristics.get(),
                         CUDNN_ATTR_ENGINEHEUR_RESULTS,
                         CUDNN_TYPE_BACKEND_DESCRIPTOR,
                         room,
                         to,
                         kObject);
  };
  std::vector<Descriptor> configs;
  std::vector<cudnnBackendDescriptor_t> filled;
  for (std::int64_t left = results(0, nullptr); left > 0; --left) {
    configs.push_back(make_descriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, kObject));
    filled.push_back(configs.back().get());
  }
  if (configs.empty()) return configs;
  const std::int64_t count = results(static_cast<std::int64_t>(filled.size()), filled.data());
  configs.resize(std::min(configs.size(), static_cast<std::size_t>(count)));
  return configs;
}

// True if the engine says of itself that its results vary from run to run.
bool says_it_varies(cudnnBackendDescriptor_t config) {
  constexpr std::string_view kObject = "an engine for attention";
  const Descriptor engine = make_descriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR, kObject);
  cudnnBackendDescriptor_t filled = engine.get();
  get_attribute(config,
                CUDNN_ATTR_ENGINECFG_ENGINE,
                CUDNN_TYPE_BACKEND_DESCRIPTOR,
                1,
                &filled,
                kObject);
  std::array<cudnnBackendNumericalNote_t, CUDNN_NUMERICAL_NOTE_TYPE_COUNT> notes{};
  const std::int64_t count = get_attribute(engine.get(),
                                           CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                           CUDNN_TYPE_NUMERICAL_NOTE,
                                           static_cast<std::int64_t>(notes.size()),
                                           notes.data(),
                                           kObject);
  const auto said = std::span(notes).first(std::min(notes.size(), static_cast<std::size_t>(count)));
  return std::ranges::find(said, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) != said.end();
}

}  // namespace

std::optional<Plan> Plan::make(cudnnHandle_t handle, Graph graph, Deterministic deterministic) {
  Plan plan(std::move(graph));
  plan.operations_ = make_operation_graph(handle, plan.graph_);
  if (try_finalize(plan.operations_.get(), "the graph of attention") == Support::No) {
    return std::nullopt;
  }
  for (const auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    if (plan.choose(handle, mode, deterministic)) return plan;
  }
  return std::nullopt;
}

bool Plan::choose(cudnnHandle_t handle, cudnnBackendHeurMode_t mode, Deterministic deterministic) {
  for (Descriptor& config : proposals(operations_.get(), mode)) {
    if (take(handle, std::move(config), deterministic)) return true;
  }
  return false;
}

bool Plan::take(cudnnHandle_t handle, Descriptor config, Deterministic deterministic) {
  constexpr std::string_view kObject = "the plan of attention";
  if (deterministic == Deterministic::Yes && says_it_varies(config.get())) return false;
  Descriptor plan = make_descriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, kObject);
  set_attribute(plan.get(),
                CUDNN_ATTR_EXECUTION_PLAN_HANDLE,
                CUDNN_TYPE_HANDLE,
                1,
                &handle,
                kObject);
  cudnnBackendDescriptor_t chosen = config.get();
  set_attribute(plan.get(),
                CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
                CUDNN_TYPE_BACKEND_DESCRIPTOR,
                1,
                &chosen,
                kObject);
  if (try_finalize(plan.get(), kObject) == Support::No) return false;
  get_attribute(plan.get(),
                CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                CUDNN_TYPE_INT64,
                1,
                &workspace_bytes_,
                kObject);
  config_ = std::move(config);
  plan_ = std::move(plan);
  return true;
}

void Plan::run(cudnnHandle_t handle, std::span<const Bound> bound, std::byte* workspace) const {
  constexpr std::string_view kObject = "the arguments of attention";
  std::vector<std::int64_t> numbers;
  std::vector<void*> memory;
  for (const Bound& each : bound) {
    numbers.push_back(each.number);
    memory.push_back(each.memory);
  }
  const auto count = static_cast<std::int64_t>(bound.size());
  const Descriptor pack = make_descriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, kObject);
  set_attribute(pack.get(),
                CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS,
                CUDNN_TYPE_INT64,
                count,
                numbers.data(),
                kObject);
  set_attribute(pack.get(),
                CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
                CUDNN_TYPE_VOID_PTR,
                count,
                memory.data(),
                kObject);
  set_attribute(pack.get(),
                CUDNN_ATTR_VARIANT_PACK_WORKSPACE,
                CUDNN_TYPE_VOID_PTR,
                1,
                &workspace,
                kObject);
  finalize(pack.get(), kObject);
  check("cudnnBackendExecute", "attention", cudnn().execute(handle, plan_.get(), pack.get()));
}

}  // namespace weft::kernels::cuda
