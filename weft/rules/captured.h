// WHAT IS CAPTURED? The one answer that every rule about CUDA graphs uses.
//
// Transformer Engine captures the parts of a layer that model.cuda_graph_modules names; where it
// names none, the whole layer is one graph. A whole iteration has its own word for who captures.
#pragma once

#include <string>

#include "weft/config/model_config.h"

namespace weft::rules {

// Whether model.cuda_graph_modules or its old name, model.cuda_graph_scope, has this scope, whoever
// captures. Megatron judges delayed weight gradients by the names, also with
// model.cuda_graph_impl=none.
bool names_scope(const config::ModelConfig& model, config::CudaGraphScope scope);

// Transformer Engine without scopes captures a layer as one graph.
bool captures_whole_layer(const config::ModelConfig& model);

// Whether a graph over layers holds this part: by its name, or with the whole layer. Parts that the
// layers of the model do not have are in no whole layer.
bool captures(const config::ModelConfig& model, config::CudaGraphScope scope);

// Whether a graph holds the attention: by its name, with its layer or with its iteration.
bool captures_attention(const config::ModelConfig& model);

// How messages name the graph that holds the part: "moe", or "the whole layer
// (model.cuda_graph_modules = [])".
std::string captured_text(const config::ModelConfig& model, config::CudaGraphScope scope);
// How a user keeps the part out of the graphs.
std::string leave_out_text(const config::ModelConfig& model, config::CudaGraphScope scope);

}  // namespace weft::rules
