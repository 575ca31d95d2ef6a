#include "weft/schedule/offload_share.h"

#include <algorithm>

#include "weft/base/casts.h"
#include "weft/derive/context_sharing.h"
#include "weft/derive/flops.h"
#include "weft/derive/gpu.h"
#include "weft/derive/layer_kind.h"
#include "weft/schedule/anatomy_bytes.h"

namespace weft::schedule {
namespace {

using base::number;
using config::OffloadModule;
using Parts = std::vector<PieceName>;

// What a norm over the heads of several ranks reads stays. Where context-parallel ranks exchange
// heads, attention reads what came and the projection what came back. The input of a layer is what
// the one before it made.
Parts parts_offloaded_by(OffloadModule module, const config::ModelConfig& model) {
  const bool has_heads = derive::exchanges_heads(model);
  switch (module) {
    case OffloadModule::CoreAttn: {
      if (derive::norms_across_ranks(model)) return {};
      Parts parts{{Piece::Attention, model.multi_latent_attention ? Part::Expand : Part::Qkv}};
      if (has_heads) parts.push_back({Piece::Attention, Part::Arrange});
      return parts;
    }
    case OffloadModule::AttnProj: {
      Parts parts{{Piece::Attention, Part::Core}};
      if (has_heads) parts.push_back({Piece::Attention, Part::Proj});
      return parts;
    }
    case OffloadModule::AttnNorm:
      return {Piece::Merge, {Piece::Mlp, Part::Add}};
    case OffloadModule::MlpNorm:
      return {{Piece::Attention, Part::Add}};
    case OffloadModule::QkvLinear:
      return {{Piece::Attention, Part::Norm}};
    case OffloadModule::ExpertFc1:
      return model.experts() > 0 ? Parts{{Piece::Experts, Part::Arrange}} : Parts{};
    case OffloadModule::MoeAct:
      return model.experts() > 0 ? Parts{{Piece::Experts, Part::Fc1}} : Parts{};
    case OffloadModule::FusedGroupMlp:
      break;  // not built: rules::missing_parts says so
  }
  return {};
}

// Of all layers together.
double bytes_of_parts(const config::Config& config, const Parts& parts) {
  const TokenFlow flow{.tp = static_cast<int>(config.model.tensor_model_parallel_size),
                       .cp = static_cast<int>(config.model.context_parallel_size),
                       .sequences = static_cast<int>(config.train.micro_batch_size)};
  const Load load = even_load(config);
  double bytes = 0;
  for (int layer = 0; layer < config.model.num_layers; ++layer) {
    for (const PieceName& name : parts) {
      const bool is_of_moe = name.piece == Piece::Experts || name.piece == Piece::Merge;
      const bool is_of_dense = name.piece == Piece::Mlp;
      if ((is_of_moe || is_of_dense) && is_of_moe != config.model.is_moe_layer(layer)) continue;
      const PieceBytes part = bytes_of(config.model, flow, name, layer);
      const Bytes& all = part.remade != Bytes{} ? part.remade : part.output;
      bytes += number((part.travels ? *part.travels : all).of(load));
    }
  }
  return bytes;
}

// How many bytes the link carries while the layers compute their forward, which is shorter than
// their backward; none: nobody knows.
std::optional<double> carried_bytes(const config::Config& config) {
  const derive::GpuFacts gpu = derive::gpu_facts(config.hardware);
  if (!gpu.tflops || !gpu.host_gbps) return std::nullopt;
  double operations = 0;
  for (std::int64_t layer = 0; layer < config.model.num_layers; ++layer) {
    operations += derive::layer_forward_flops(config.model, layer);
  }
  operations *= number(even_load(config).tokens);
  const double seconds = operations / (*gpu.tflops * 1e12 * derive::kReachedOfProducts);
  return seconds * *gpu.host_gbps * 1e9 * derive::kReachedOfHostLink;
}

}  // namespace

Load even_load(const config::Config& config) {
  const config::ModelConfig& model = config.model;
  const std::int64_t tokens = config.train.micro_batch_size * model.seq_length /
                              (model.tensor_model_parallel_size * model.context_parallel_size);
  return {.tokens = tokens, .rows = tokens * model.expert_grid().per_token};
}

std::vector<OffloadedModule> offloaded_modules(const config::Config& config) {
  const config::ModelConfig& model = config.model;
  std::vector<OffloadedModule> modules;
  if (!model.fine_grained_activation_offloading) return modules;
  const std::optional<double> carried = carried_bytes(config);
  double left = carried.value_or(0);
  for (const OffloadModule module : model.offload_modules) {
    if (std::ranges::find(modules, module, &OffloadedModule::module) != modules.end()) continue;
    OffloadedModule one{.module = module, .parts = parts_offloaded_by(module, model)};
    const double bytes = bytes_of_parts(config, one.parts);
    if (config.runtime.offload_layers_share > 0) {
      one.share = config.runtime.offload_layers_share;
    } else if (carried && bytes > 0) {
      one.share = std::clamp(left / bytes, 0.0, 1.0);
    }
    one.share = std::min(one.share, model.activation_offload_fraction);
    left -= one.share * bytes;
    modules.push_back(std::move(one));
  }
  return modules;
}

}  // namespace weft::schedule
