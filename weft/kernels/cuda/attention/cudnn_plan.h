// Graph with the engine that runs it.
//
// A rule chooses the engine, never timing: the first that the library's heuristics propose and that
// it can build. So the same shapes give the same bits, as long as the library and the card are the
// same.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "weft/kernels/cuda/attention/cudnn_graph.h"
#include "weft/tensor/device.h"

namespace weft::kernels::cuda {

// Memory of a real tensor, or of a scalar on the host.
struct Bound {
  std::int64_t number = 0;
  void* memory = nullptr;
};

class Plan {
 public:
  // nullopt: the library supports no engine for it, or none that we take. If equal bits are asked
  // for, engines that vary by their own word are passed over.
  static std::optional<Plan> make(cudnnHandle_t handle,
                                  Graph graph,
                                  tensor::Deterministic deterministic);

  std::int64_t workspace_bytes() const { return workspace_bytes_; }
  // Enqueues the graph on the handle's stream. Scalars are read before it returns.
  void run(cudnnHandle_t handle, std::span<const Bound> bound, std::byte* workspace) const;

 private:
  explicit Plan(Graph graph) : graph_(std::move(graph)) {}

  bool choose(cudnnHandle_t handle,
              cudnnBackendHeurMode_t mode,
              tensor::Deterministic deterministic);
  bool take(cudnnHandle_t handle, Descriptor config, tensor::Deterministic deterministic);

  // Each descriptor follows the ones that it names; they are destroyed from the last on.
  Graph graph_;
  Descriptor operations_, config_, plan_;
  std::int64_t workspace_bytes_ = 0;
};

}  // namespace weft::kernels::cuda
