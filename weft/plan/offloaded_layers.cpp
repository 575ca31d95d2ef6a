#include "weft/plan/offloaded_layers.h"

#include <set>

#include "weft/base/casts.h"
#include "weft/schedule/offload_share.h"
#include "weft/schedule/passes/offload.h"

namespace weft::plan {
namespace {

using schedule::Part;
using schedule::Piece;
using schedule::PieceName;

bool is_of_experts_alone(const PieceName& name) {
  return name.piece == Piece::Experts || name.piece == Piece::Merge;
}

bool has_part(const config::ModelConfig& model, std::int64_t layer, const PieceName& name) {
  if (is_of_experts_alone(name)) return model.is_moe_layer(layer);
  return name.piece != Piece::Mlp || !model.is_moe_layer(layer);
}

// What a layer hands on to the next.
bool ends_layer(const PieceName& name) {
  return name.piece == Piece::Merge || (name.piece == Piece::Mlp && name.part == Part::Add);
}

}  // namespace

OffloadedParts offloaded_parts(const config::Config& config) {
  OffloadedParts parts;
  for (const schedule::OffloadedModule& module : schedule::offloaded_modules(config)) {
    for (const PieceName& name : module.parts) {
      if (module.share > 0) parts.push_back({.name = name, .share = module.share});
    }
  }
  return parts;
}

std::vector<std::vector<PieceName>> offloaded_of_stage(const config::ModelConfig& model,
                                                       const derive::Stage& stage,
                                                       const OffloadedParts& parts) {
  std::vector<std::vector<PieceName>> layers(base::at(stage.layers));
  for (const schedule::OffloadedPart& part : parts) {
    const bool hands_on = ends_layer(part.name);
    const int last = stage.layers - (stage.loss || hands_on ? 1 : 0);
    std::size_t nth = 0;  // of those that have it
    for (int i = 0; i < last; ++i) {
      if (!has_part(model, stage.first_layer + i, part.name)) continue;
      if (schedule::is_offloaded_nth(nth++, part.share)) layers[base::at(i)].push_back(part.name);
    }
  }
  return layers;
}

schedule::Detail detail_with(const OffloadedParts& parts, const config::ModelConfig& model) {
  schedule::Detail detail;
  std::set<Piece> split;
  for (const schedule::OffloadedPart& part : parts) {
    if (is_of_experts_alone(part.name) && model.experts() == 0) continue;
    if (part.name.piece == Piece::Mlp && model.experts() > 0) continue;
    if (part.name.part != Part::None) split.insert(part.name.piece);
    detail.offloaded.push_back(part);
  }
  detail.split.assign(split.begin(), split.end());
  return detail;
}

}  // namespace weft::plan
