// How many parameters a model has, and which rank holds how many.
#pragma once

#include <cstdint>
#include <vector>

#include "weft/config/config.h"

namespace weft::derive {

// Of one layer, by what parallelism does with them.
struct LayerParameters {
  std::int64_t split = 0;       // shared between tp ranks: attention, dense or shared feed-forward
  std::int64_t keys = 0;        // the same, but by key/value heads: more ranks hold copies
  std::int64_t replicated = 0;  // on every tp rank: norms, router, gates, what compresses
  std::int64_t untrained = 0;   // on every rank, fp32: the router's bias, which balance moves
  std::int64_t experts = 0;     // of all routed experts: shared between ep and etp ranks
  std::int64_t visited = 0;     // of the routed experts that one token goes to

  // Without what is not trained, which is state and no parameter.
  std::int64_t total() const { return split + keys + replicated + experts; }
  std::int64_t active() const { return split + keys + replicated + visited; }
};

LayerParameters layer_parameters(const config::ModelConfig& model, std::int64_t layer);
// A layer of multi-token prediction: three norms, a projection of two hidden states to one, and a
// layer of the last layer's kind. It shares embedding and head with the model.
LayerParameters mtp_layer_parameters(const config::ModelConfig& model);

struct ParameterCount {
  std::int64_t total = 0;    // with multi-token prediction
  std::int64_t active = 0;   // of the model proper, without the experts a token does not visit
  std::int64_t experts = 0;  // those of all routed experts
  std::int64_t mtp = 0;      // those of multi-token prediction
};
ParameterCount parameters_of(const config::ModelConfig& model);

// No less than the parameters, for any model whose numbers are in range; cannot overflow.
double most_parameters(const config::ModelConfig& model);

// What one rank holds.
struct RankParameters {
  std::int64_t dense = 0;      // everything that is not a routed expert, and is trained
  std::int64_t experts = 0;    // routed experts
  std::int64_t untrained = 0;  // fp32, without gradient and optimizer
  std::int64_t total() const { return dense + experts + untrained; }
};
// By pipeline rank; every rank of a stage holds as many. Wants a legal config. The embedding is
// held by its stage and, where that is another rank, again by those that reuse its weights: the
// head of a tied model and the layers of multi-token prediction.
std::vector<RankParameters> rank_parameters(const config::Config& config);

}  // namespace weft::derive
