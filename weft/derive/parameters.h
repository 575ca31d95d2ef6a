// Number of parameters of a model, and of each rank.
#pragma once

#include <cstdint>
#include <vector>

#include "weft/config/config.h"

namespace weft::derive {

// Parameters of blocks.
struct BlockParameters {
  std::int64_t dense = 0;      // everything except routed experts
  std::int64_t untrained = 0;  // fp32: the router's bias, moved by load balancing
  std::int64_t experts = 0;    // all routed experts
  std::int64_t visited = 0;    // routed experts that one token visits

  // Excludes untrained values, which are state rather than parameters.
  std::int64_t total() const { return dense + experts; }
  std::int64_t active() const { return dense + visited; }
};

BlockParameters layer_parameters(const config::ModelConfig& model, std::int64_t layer);
// Layer of multi-token prediction: three norms, a projection of two hidden states to one, and a
// layer of the last layer's kind. It shares embedding and head with the model.
BlockParameters mtp_layer_parameters(const config::ModelConfig& model);

struct ParameterCount {
  std::int64_t total = 0;    // including multi-token prediction
  std::int64_t active = 0;   // without multi-token prediction and unvisited experts
  std::int64_t experts = 0;  // all routed experts
  std::int64_t mtp = 0;      // multi-token prediction
};
ParameterCount parameters_of(const config::ModelConfig& model);

// Total in floating point, for any numbers in range, which could overflow an integer.
double rough_parameters(const config::ModelConfig& model);

// Parameters on one rank.
struct RankParameters {
  std::int64_t dense = 0;      // trained parameters other than routed experts
  std::int64_t experts = 0;    // routed experts
  std::int64_t untrained = 0;  // fp32, without gradient and optimizer state
  std::int64_t total() const { return dense + experts + untrained; }
};
// By pipeline rank; ranks of a stage hold equally many. Requires a legal config. Further stages
// that use the embedding's weights hold a copy: the head of a tied model, and the layers of
// multi-token prediction.
std::vector<RankParameters> rank_parameters(const config::Config& config);

}  // namespace weft::derive
