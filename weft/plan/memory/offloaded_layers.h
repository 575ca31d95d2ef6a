// Offloaded parts of a run's layers, without its graph. Same distribution as the offloading pass
// (schedule/passes/offload.h), for the number of layers that the link carries
// (schedule/memory/offload_share.h).
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "weft/config/config.h"
#include "weft/derive/pipeline.h"
#include "weft/plan/cost/layer_time.h"
#include "weft/schedule/anatomy.h"

namespace weft::plan {

using OffloadedParts = std::vector<schedule::OffloadedPart>;

// Part of a layer that model.offload_modules names and that is kept.
struct OffloadablePart {
  schedule::PieceName name;
  double copied = 0;             // bytes to the host
  bool is_layer_output = false;  // input of the next layer
};
std::vector<OffloadablePart> offloadable_parts(const config::Config& config,
                                               std::int64_t layer,
                                               Recomputed whole);

// Stages of a run with the offloadable parts of their layers; asks once per kind of layer.
class OffloadableLayers {
 public:
  using Make = std::function<std::vector<OffloadablePart>(std::int64_t layer, Recomputed whole)>;
  OffloadableLayers(const config::ModelConfig& model,
                    const std::vector<derive::Stage>& stages,
                    const Make& make);

  std::size_t stages() const { return stages_.size(); }
  int layers(std::size_t stage) const { return stages_[stage].layers; }

  // Visits the layers of a stage that can offload a part, in order, each by its index.
  template <typename Visit>
  void for_each(std::size_t stage, const schedule::PieceName& name, const Visit& visit) const;

 private:
  const std::vector<derive::Stage>& stages_;
  std::deque<std::vector<OffloadablePart>> kinds_;
  std::vector<std::vector<const std::vector<OffloadablePart>*>> parts_;  // by stage and index
};

// Parts that model.offload_modules names, with the share of layers that the link carries. Empty:
// nothing is offloaded.
OffloadedParts offloaded_parts(const config::Config& config, const OffloadableLayers& layers);
OffloadedParts offloaded_parts(const config::Config& config);

// Offloaded parts by stage and layer.
using OffloadedStages = std::vector<std::vector<std::vector<schedule::PieceName>>>;
OffloadedStages offloaded_of_stages(const OffloadableLayers& layers, const OffloadedParts& parts);

// Detail for a step whose config offloads nothing, with these parts offloaded.
schedule::Detail detail_with(const OffloadedParts& parts);

// Tells whether a whole layer is recomputed, by its index in its stage.
Recomputed recomputed_at(const config::ModelConfig& model, int place);

}  // namespace weft::plan
