#include "weft/rules/captured.h"

#include <algorithm>

namespace weft::rules {

using namespace config;

bool names_scope(const ModelConfig& model, CudaGraphScope scope) {
  const auto has = [&](const std::vector<CudaGraphScope>& scopes) {
    return std::ranges::find(scopes, scope) != scopes.end();
  };
  return has(model.cuda_graph_modules) || has(model.cuda_graph_scope);
}

bool captures_whole_layer(const ModelConfig& model) {
  if (model.cuda_graph_impl != CudaGraphImpl::TransformerEngine) return false;
  const bool unnamed = model.cuda_graph_modules.empty() && model.cuda_graph_scope.empty();
  return unnamed || names_scope(model, CudaGraphScope::Full);
}

}  // namespace weft::rules
