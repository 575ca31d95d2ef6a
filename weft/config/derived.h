// Numbers that follow from a config. They assume what validate.h checks, except where said.
#pragma once

#include <cstdint>

#include "weft/config/config.h"
#include "weft/grid/fabric.h"
#include "weft/grid/layout.h"

namespace weft::config {

// The layout the config asks for; its world is runtime.world_size or the fewest ranks that serve
// the sizes. The layout may be illegal: Grid and validate() say so.
grid::Layout layout_of(const Config& config);

// Whether the run is for GPUs; without any hardware.* it is for CPU ranks.
bool is_on_gpu(const Config& config);

// The links between the ranks: emulated where they are not free.
grid::Fabric fabric_of(const Config& config);

struct ParameterCount {
  std::int64_t total = 0;
  std::int64_t active = 0;   // without the experts a token does not visit
  std::int64_t experts = 0;  // those of all routed experts
};
ParameterCount parameters_of(const ModelConfig& model);

// No less than the parameters, for any model whose numbers are in range; cannot overflow.
double most_parameters(const ModelConfig& model);

// Floating-point operations of one token in one training step, forward and backward: matrix
// products and causal attention; no recomputation, embedding lookup or router.
double flops_per_token(const ModelConfig& model);

// Micro-batches of one rank in one step, under `dp` data-parallel ranks.
std::int64_t micro_batches(const TrainConfig& train, std::int64_t dp);

std::int64_t tokens_per_step(const Config& config);

}  // namespace weft::config
