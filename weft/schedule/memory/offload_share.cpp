#include "weft/schedule/memory/offload_share.h"

#include <algorithm>

#include "weft/base/casts.h"
#include "weft/derive/blocks.h"
#include "weft/derive/context_sharing.h"
#include "weft/derive/flops.h"
#include "weft/derive/gpu.h"
#include "weft/derive/layer_kind.h"
#include "weft/derive/pipeline.h"
#include "weft/schedule/memory/savings.h"
#include "weft/schedule/passes/offload.h"
#include "weft/schedule/passes/parts.h"
#include "weft/schedule/passes/recompute.h"

namespace weft::schedule {
namespace {

using base::at;
using base::number;
using config::OffloadModule;
using Parts = std::vector<PieceName>;

// Inputs of a norm over the heads of several ranks stay. If context-parallel ranks exchange heads,
// attention reads received heads, and the projection the returned output. A layer's input is the
// output of the layer before it.
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
      break;  // rules::missing_parts refuses it
  }
  return {};
}

// Bytes over all layers of all pipeline ranks.
double bytes_of_parts(const std::vector<Anatomy>& ranks, const Parts& parts, const Load& load) {
  double bytes = 0;
  for (const Anatomy& anatomy : ranks) {
    for (const Chunk& chunk : anatomy.chunks) {
      for (const PieceName& name : parts) {
        for (const PiecePlace& place : offloadable(anatomy, chunk, name)) {
          bytes += number(anatomy.layers[at(place.layer)][place.index].offloaded_bytes().of(load));
        }
      }
    }
  }
  return bytes;
}

std::vector<OffloadedModule> named_modules(const config::ModelConfig& model) {
  std::vector<OffloadedModule> modules;
  for (const OffloadModule module : model.offload_modules) {
    if (std::ranges::find(modules, module, &OffloadedModule::module) != modules.end()) continue;
    modules.push_back({.module = module, .parts = parts_offloaded_by(module, model)});
  }
  return modules;
}

}  // namespace

Load even_load(const config::Config& config) {
  const config::ModelConfig& model = config.model;
  const std::int64_t tokens = config.train.micro_batch_size * model.seq_length /
                              (model.tensor_model_parallel_size * model.context_parallel_size);
  return {.tokens = tokens, .rows = tokens * model.expert_grid().per_token};
}

std::optional<double> carried_bytes(const config::Config& config) {
  const derive::GpuFacts gpu = derive::gpu_facts(config.hardware);
  if (!gpu.tflops || !gpu.host_gbps) return std::nullopt;
  double operations = 0;
  for (const auto& [layer, count] : derive::layer_kinds(config.model, 0, config.model.num_layers)) {
    operations += number(count) * derive::layer_forward_flops(config.model, layer).all();
  }
  operations *= number(even_load(config).tokens);
  const double seconds = operations / (*gpu.tflops * 1e12 * derive::kReachedOfProducts);
  return seconds * *gpu.host_gbps * 1e9 * derive::kReachedOfHostLink;
}

Anatomy before_offload(const config::Config& config,
                       int pp_rank,
                       const std::vector<PieceName>& parts) {
  const TokenFlow flow{.tp = static_cast<int>(config.model.tensor_model_parallel_size),
                       .cp = static_cast<int>(config.model.context_parallel_size),
                       .sequences = static_cast<int>(config.train.micro_batch_size)};
  Detail detail;
  for (const PieceName& name : parts) {
    if (name.part != Part::None) detail.split.push_back(name.piece);
  }
  detail = with_recomputed(std::move(detail), config);
  Anatomy anatomy = describe(config.model, {}, pp_rank, flow, derive::placement_of(config));
  anatomy = with_parts(std::move(anatomy), detail.split);
  anatomy = with_recomputation(std::move(anatomy), detail.recomputed, detail.recomputed_layers);
  return with_grouped_layers(std::move(anatomy), detail.recomputed_group);
}

std::vector<OffloadedModule> offloaded_modules(const config::Config& config) {
  const config::ModelConfig& model = config.model;
  if (!model.fine_grained_activation_offloading) return {};
  std::vector<OffloadedModule> modules = named_modules(model);
  for (OffloadedModule& module : modules) {
    if (config.runtime.offload_layers_share > 0) module.share = config.runtime.offload_layers_share;
    module.share = std::min(module.share, model.activation_offload_fraction);
  }
  const std::optional<double> carried = carried_bytes(config);
  if (!carried || config.runtime.offload_layers_share > 0) return modules;
  Parts all;
  for (const OffloadedModule& module : modules) {
    all.insert(all.end(), module.parts.begin(), module.parts.end());
  }
  std::vector<Anatomy> ranks;
  for (int pp_rank = 0; pp_rank < model.pipeline_model_parallel_size; ++pp_rank) {
    ranks.push_back(before_offload(config, pp_rank, all));
  }
  double left = *carried;
  for (OffloadedModule& module : modules) {
    const double bytes = bytes_of_parts(ranks, module.parts, even_load(config));
    if (bytes > 0 && module.share * bytes > left) {
      module.share = std::max(left, 0.0) / bytes;
      module.is_cut = true;
    }
    left -= module.share * bytes;
  }
  return modules;
}

}  // namespace weft::schedule
