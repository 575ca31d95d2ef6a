// WHAT IS CAPTURED? The single answer for every rule about CUDA graphs.
//
// Transformer Engine captures the parts of a layer listed in model.cuda_graph_modules; an empty
// list captures the whole layer as one graph. A whole iteration is a separate value of
// model.cuda_graph_impl.
#pragma once

#include <string>

#include "weft/config/model_config.h"

namespace weft::rules {

// True if model.cuda_graph_modules or its old name, model.cuda_graph_scope, lists this scope, with
// any implementation. Megatron judges delayed weight gradients by the lists, even with
// model.cuda_graph_impl=none.
bool names_scope(const config::ModelConfig& model, config::CudaGraphScope scope);

// True if Transformer Engine captures a layer as one graph: no scopes are listed.
bool captures_whole_layer(const config::ModelConfig& model);

// True if a graph contains this part, by name or with the whole layer. A part that no layer of the
// model has is never contained.
bool captures(const config::ModelConfig& model, config::CudaGraphScope scope);

// True if a graph contains the attention: by name, with its layer or with its iteration.
bool captures_attention(const config::ModelConfig& model);

// Name, for messages, of the graph that contains the part: "moe", or "the whole layer
// (model.cuda_graph_modules = [])".
std::string captured_text(const config::ModelConfig& model, config::CudaGraphScope scope);
// Instruction for keeping the part out of the graphs.
std::string leave_out_text(const config::ModelConfig& model, config::CudaGraphScope scope);

}  // namespace weft::rules
