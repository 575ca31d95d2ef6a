#include "weft/plan/memory/offloaded_layers.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "weft/base/casts.h"
#include "weft/derive/layer_kind.h"
#include "weft/plan/cost/layers_alone.h"
#include "weft/schedule/memory/offload_share.h"
#include "weft/schedule/passes/offload.h"

namespace weft::plan {
namespace {

using base::number;
using config::Config;
using schedule::PieceName;

// Named modules in all layers that have them, whatever the link carries.
std::vector<schedule::OffloadedModule> modules_named(Config config) {
  config.runtime.offload_layers_share = 1;
  return schedule::offloaded_modules(config);
}

const OffloadablePart* find_part(const std::vector<OffloadablePart>& parts, const PieceName& name) {
  const auto found = std::ranges::find(parts, name, &OffloadablePart::name);
  return found == parts.end() ? nullptr : &*found;
}

}  // namespace

std::vector<OffloadablePart> offloadable_parts(const Config& config,
                                               std::int64_t layer,
                                               Recomputed whole) {
  std::vector<PieceName> names;
  for (const schedule::OffloadedModule& module : modules_named(config)) {
    names.insert(names.end(), module.parts.begin(), module.parts.end());
  }
  Config alone = layers_alone(config, layer, whole);
  alone.model.num_layers = 1;
  const schedule::Anatomy anatomy = schedule::before_offload(alone, 0, names);
  const schedule::Load load = schedule::even_load(config);
  const std::vector<schedule::PieceAnatomy>& pieces = anatomy.layers.front();
  std::vector<OffloadablePart> parts;
  for (const PieceName& name : names) {
    for (const schedule::PieceAnatomy& piece : pieces) {
      if (!piece.is(name) || piece.absent_bytes() == schedule::Bytes{} || piece.is_recomputed)
        continue;
      parts.push_back({.name = name,
                       .copied = number(piece.offloaded_bytes().of(load)),
                       .is_layer_output = &piece == &pieces.back()});
    }
  }
  return parts;
}

OffloadableLayers::OffloadableLayers(const config::ModelConfig& model,
                                     const std::vector<derive::Stage>& stages,
                                     const Make& make)
    : stages_(stages) {
  using Kind = std::tuple<bool, derive::AttentionKind, Recomputed>;
  std::map<Kind, const std::vector<OffloadablePart>*> known;
  for (const derive::Stage& stage : stages) {
    parts_.emplace_back();
    for (int i = 0; i < stage.layers; ++i) {
      const std::int64_t layer = stage.first_layer + i;
      const Recomputed whole = recomputed_at(model, i);
      const Kind kind{model.is_moe_layer(layer), derive::attention_of(model, layer), whole};
      const auto [found, is_new] = known.try_emplace(kind, nullptr);
      if (is_new) found->second = &kinds_.emplace_back(make(layer, whole));
      parts_.back().push_back(found->second);
    }
  }
}

template <typename Visit>
void OffloadableLayers::for_each(std::size_t stage,
                                 const PieceName& name,
                                 const Visit& visit) const {
  const int layers = stages_[stage].layers;
  for (int i = 0; i < layers - (stages_[stage].loss ? 1 : 0); ++i) {
    const OffloadablePart* part = find_part(*parts_[stage][base::at(i)], name);
    if (part == nullptr || (part->is_layer_output && i + 1 == layers)) continue;
    visit(i, *part);
  }
}

OffloadedParts offloaded_parts(const Config& config, const OffloadableLayers& layers) {
  if (!config.model.fine_grained_activation_offloading) return {};
  const std::optional<double> carried = schedule::carried_bytes(config);
  const double given = config.runtime.offload_layers_share;
  double left = carried.value_or(0);
  OffloadedParts parts;
  for (const schedule::OffloadedModule& module : modules_named(config)) {
    double share = given > 0 ? std::min(given, module.share) : module.share;
    double bytes = 0;
    for (std::size_t stage = 0; stage < layers.stages(); ++stage) {
      for (const PieceName& name : module.parts) {
        layers.for_each(stage, name, [&](int, const OffloadablePart& part) {
          bytes += part.copied;
        });
      }
    }
    if (carried && given <= 0 && bytes > 0) share = std::min(share, std::max(left, 0.0) / bytes);
    left -= share * bytes;
    for (const PieceName& name : module.parts) {
      if (share > 0 && bytes > 0) parts.push_back({.name = name, .share = share});
    }
  }
  return parts;
}

OffloadedParts offloaded_parts(const Config& config) {
  if (!config.model.fine_grained_activation_offloading) return {};
  const std::vector<derive::Stage> stages = derive::stages_of(config.model).all;
  const auto make = [&](std::int64_t layer, Recomputed whole) {
    return offloadable_parts(config, layer, whole);
  };
  return offloaded_parts(config, OffloadableLayers(config.model, stages, make));
}

OffloadedStages offloaded_of_stages(const OffloadableLayers& layers, const OffloadedParts& parts) {
  OffloadedStages gone(layers.stages());
  for (std::size_t stage = 0; stage < layers.stages(); ++stage) {
    gone[stage].resize(base::at(layers.layers(stage)));
    for (const schedule::OffloadedPart& part : parts) {
      std::size_t nth = 0;  // index among layers with the part
      layers.for_each(stage, part.name, [&](int place, const OffloadablePart&) {
        if (!schedule::is_offloaded_nth(nth++, part.share)) return;
        gone[stage][base::at(place)].push_back(part.name);
      });
    }
  }
  return gone;
}

schedule::Detail detail_with(const OffloadedParts& parts) {
  schedule::Detail detail;
  std::set<schedule::Piece> split;
  for (const schedule::OffloadedPart& part : parts) {
    if (part.name.part != schedule::Part::None) split.insert(part.name.piece);
  }
  detail.split.assign(split.begin(), split.end());
  detail.offloaded = parts;
  return detail;
}

Recomputed recomputed_at(const config::ModelConfig& model, int place) {
  if (model.recompute_granularity != config::RecomputeGranularity::Full) return Recomputed::No;
  const bool block = model.recompute_method == config::RecomputeMethod::Block;
  return !block || place < model.recompute_num_layers.value_or(1) ? Recomputed::Yes
                                                                  : Recomputed::No;
}

}  // namespace weft::plan
