#include "weft/rules/chosen.h"

namespace weft::rules {

using namespace config;

bool recomputes(const ModelConfig& model, RecomputeModule module) {
  return model.recompute_granularity == RecomputeGranularity::Selective &&
         model.recompute_modules && contains(*model.recompute_modules, module);
}

bool offloads(const ModelConfig& model, OffloadModule module) {
  return model.fine_grained_activation_offloading && contains(model.offload_modules, module);
}

bool captures(const ModelConfig& model, CudaGraphScope scope) {
  return model.cuda_graph_impl != CudaGraphImpl::None && contains(model.cuda_graph_modules, scope);
}

bool captures_attention(const ModelConfig& model) {
  if (model.cuda_graph_impl == CudaGraphImpl::None) return false;
  return model.cuda_graph_modules.empty() || captures(model, CudaGraphScope::Attn) ||
         captures(model, CudaGraphScope::FullIteration);
}

bool is_quantized(const ModelConfig& model) { return model.fp8 || model.fp4; }

}  // namespace weft::rules
