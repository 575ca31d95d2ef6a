// In which buckets a rank exchanges gradients and weights with the ranks that hold the same.
#pragma once

#include <vector>

#include "weft/config/config.h"
#include "weft/derive/buffer_layout.h"
#include "weft/derive/parameter_list.h"

namespace weft::derive {

// By home; what is not trained is one bucket that nobody exchanges.
struct BufferScheme {
  BufferRules dense, expert;
  config::Precision gradients = config::Precision::Fp32;

  BufferRules of(Home home) const;
};

// Of a pipeline rank. Without overlap a chunk's gradients are one bucket; with it they are cut on
// the first stage alone: the later ones have the bubble to exchange in.
BufferScheme buffer_scheme(const config::Config& config, int pp_rank);

// What a rank has its gradients in: fp32, or bf16 where optimizer.main_grads_dtype says so.
config::Precision main_gradients(const config::Config& config);
// What they are between the ranks that sum them: never wider than that.
config::Precision gradient_wire(const config::Config& config);

// How a rank's parameters of one home lie; in order of use.
BufferLayout lay_out(const config::ModelConfig& model,
                     const Holding& holding,
                     const std::vector<const ParameterSpec*>& parameters,
                     const BufferRules& rules);

}  // namespace weft::derive
