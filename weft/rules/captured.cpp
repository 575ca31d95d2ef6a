#include "weft/rules/captured.h"

#include <algorithm>

#include "weft/base/check.h"
#include "weft/base/text.h"

namespace weft::rules {

using namespace config;
namespace {

using base::text;

// True if some layer of the model has the part.
bool has_part(const ModelConfig& model, CudaGraphScope scope) {
  switch (scope) {
    case CudaGraphScope::Moe:
    case CudaGraphScope::MoeRouter:
    case CudaGraphScope::MoePreprocess:
      return model.experts() > 1;
    case CudaGraphScope::Attn:
    case CudaGraphScope::Mlp:
      return true;
    case CudaGraphScope::Mamba:
    case CudaGraphScope::Full:
    case CudaGraphScope::FullIteration:
      return false;
  }
  UNREACHABLE("scope {}", static_cast<int>(scope));
}

}  // namespace

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

bool captures(const ModelConfig& model, CudaGraphScope scope) {
  if (model.cuda_graph_impl == CudaGraphImpl::None) return false;
  return names_scope(model, scope) || (captures_whole_layer(model) && has_part(model, scope));
}

bool captures_attention(const ModelConfig& model) {
  return model.cuda_graph_impl == CudaGraphImpl::FullIteration ||
         captures(model, CudaGraphScope::Attn) || captures(model, CudaGraphScope::FullIteration);
}

std::string captured_text(const ModelConfig& model, CudaGraphScope scope) {
  if (captures_whole_layer(model)) return "the whole layer (model.cuda_graph_modules = [])";
  return std::string(word(scope));
}

std::string leave_out_text(const ModelConfig& model, CudaGraphScope scope) {
  if (captures_whole_layer(model)) {
    return text("name the parts to capture in model.cuda_graph_modules, without {}", word(scope));
  }
  return text("take {} out of model.cuda_graph_modules", word(scope));
}

}  // namespace weft::rules
