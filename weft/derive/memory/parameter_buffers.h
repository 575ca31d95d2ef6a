// Buckets in which a rank exchanges gradients and weights with ranks that hold equal parameters.
#pragma once

#include <vector>

#include "weft/config/config.h"
#include "weft/derive/memory/buffer_layout.h"
#include "weft/derive/parameter_list.h"

namespace weft::derive {

// By home. Untrained parameters are one bucket without exchange.
struct BufferScheme {
  BufferRules dense, expert;
  base::DType gradients = base::DType::F32;

  BufferRules of(Home home) const;
};

// Scheme of a pipeline rank. Without overlap, a chunk's gradients are one bucket. With overlap,
// only the first stage cuts them: later stages exchange during the bubble.
BufferScheme buffer_scheme(const config::Config& config, int pp_rank);

// Dtype of stored gradients: fp32, or bf16 by optimizer.main_grads_dtype.
base::DType main_gradients(const config::Config& config);
// Dtype of gradients in flight: never wider than stored.
base::DType gradient_wire(const config::Config& config);

// Layout of a rank's parameters of one home; they are given in order of use.
BufferLayout lay_out(const config::ModelConfig& model,
                     const Holding& holding,
                     const std::vector<const ParameterSpec*>& parameters,
                     const BufferRules& rules);

}  // namespace weft::derive
