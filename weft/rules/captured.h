// What CUDA graphs capture of a layer, as rules about other things ask.
#pragma once

#include "weft/config/model_config.h"

namespace weft::rules {

// Whether model.cuda_graph_modules or its old name, model.cuda_graph_scope, has this scope. Asked
// before model.cuda_graph_impl=none clears them: Megatron judges overlap by the names.
bool names_scope(const config::ModelConfig& model, config::CudaGraphScope scope);

// Transformer Engine without scopes captures a layer as one graph.
bool captures_whole_layer(const config::ModelConfig& model);

}  // namespace weft::rules
