#include "weft/schedule/memory/savings.h"

#include <algorithm>
#include <set>

#include "weft/base/check.h"
#include "weft/config/enums.h"
#include "weft/derive/layer_kind.h"
#include "weft/schedule/memory/offload_share.h"

namespace weft::schedule {
namespace {

using config::RecomputeModule;
using Names = std::vector<PieceName>;

// Expert rows are resent, and the experts' outputs recomputed from them.
const Names kRoutedExperts{{Piece::Route, Part::Choose},
                           Piece::Permute,
                           Piece::Dispatch,
                           {Piece::Experts, Part::Arrange},
                           {Piece::Experts, Part::Fc1},
                           {Piece::Experts, Part::Act}};
const Names kMlp{{Piece::Mlp, Part::Fc1}, {Piece::Mlp, Part::Act}};
const Names kShared{{Piece::Shared, Part::Fc1}};

bool has_dense_layers(const config::ModelConfig& model) {
  for (std::int64_t layer = 0; layer < model.num_layers; ++layer) {
    if (!model.is_moe_layer(layer)) return true;
  }
  return false;
}

bool has_shared_experts(const config::ModelConfig& model) {
  return model.moe_layers() > 0 && derive::shared_expert_width(model) > 0;
}

void add(Names& names, const Names& more) {
  for (const PieceName& name : more) {
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
}

Names norms_of(const config::ModelConfig& model) {
  Names names{{Piece::Attention, Part::Norm}};
  if (model.moe_layers() > 0) names.push_back({Piece::Route, Part::Norm});
  if (has_dense_layers(model)) names.push_back({Piece::Mlp, Part::Norm});
  return names;
}

Names experts_of(const config::ModelConfig& model) {
  Names names;
  if (model.moe_layers() > 0) names = kRoutedExperts;
  if (has_shared_experts(model)) add(names, kShared);
  return names;
}

// W72 warns of a module that the model lacks; it recomputes no pieces.
Names names_of(RecomputeModule module, const config::ModelConfig& model) {
  switch (module) {
    case RecomputeModule::CoreAttn:
      return {{Piece::Attention, Part::Core}};
    case RecomputeModule::Layernorm:
      return norms_of(model);
    case RecomputeModule::MlaUpProj:
      return {{Piece::Attention, Part::Expand}};
    case RecomputeModule::MoeAct:
      return model.moe_layers() > 0 ? Names{{Piece::Experts, Part::Act}} : Names{};
    case RecomputeModule::Mlp:
      return has_dense_layers(model) ? kMlp : Names{};
    case RecomputeModule::Moe:
      return experts_of(model);
    case RecomputeModule::SharedExperts:
      return has_shared_experts(model) ? kShared : Names{};
    case RecomputeModule::GdnNormOut:
      break;
  }
  UNREACHABLE("recomputation of {} is not built", config::word(module));
}

// Everything in a layer except its input.
Names layer_names(const config::ModelConfig& model) {
  Names names{Piece::Attention};
  add(names, norms_of(model));
  if (has_dense_layers(model)) add(names, kMlp);
  add(names, experts_of(model));
  return names;
}

Names recomputed_by(const config::ModelConfig& model) {
  if (!model.recompute_granularity) return {};
  if (*model.recompute_granularity == config::RecomputeGranularity::Full) return layer_names(model);
  Names names;
  for (const RecomputeModule module :
       model.recompute_modules.value_or(std::vector<RecomputeModule>{})) {
    add(names, names_of(module, model));
  }
  return names;
}

}  // namespace

Detail with_recomputed(Detail detail, const config::Config& config) {
  const config::ModelConfig& model = config.model;
  const Names names = recomputed_by(model);
  std::set<Piece> split(detail.split.begin(), detail.split.end());
  for (const PieceName& name : names) {
    if (name.part != Part::None || name.piece == Piece::Attention) split.insert(name.piece);
  }
  detail.split.assign(split.begin(), split.end());
  add(detail.recomputed, names);
  if (model.recompute_granularity != config::RecomputeGranularity::Full) return detail;
  const auto layers = static_cast<int>(model.recompute_num_layers.value_or(1));
  if (model.recompute_method == config::RecomputeMethod::Block) {
    detail.recomputed_layers = layers;
  } else {
    detail.recomputed_group = layers;
  }
  return detail;
}

Detail with_savings(Detail detail, const config::Config& config) {
  detail = with_recomputed(std::move(detail), config);
  std::set<Piece> split(detail.split.begin(), detail.split.end());
  for (const OffloadedModule& module : offloaded_modules(config)) {
    for (const PieceName& name : module.parts) {
      if (name.part != Part::None) split.insert(name.piece);
      detail.offloaded.push_back({.name = name, .share = module.share});
    }
  }
  detail.split.assign(split.begin(), split.end());
  return detail;
}

}  // namespace weft::schedule
