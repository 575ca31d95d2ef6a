// Which parts of which layers of a run wait in the host's memory, without its graph: as the pass
// that offloads deals them out (schedule/passes/offload.h), by as many layers as the link carries
// (schedule/offload_share.h).
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "weft/config/config.h"
#include "weft/derive/pipeline.h"
#include "weft/plan/layer_time.h"
#include "weft/schedule/anatomy.h"

namespace weft::plan {

using OffloadedParts = std::vector<schedule::OffloadedPart>;

// Of one layer, a part that model.offload_modules name and that is kept.
struct OffloadablePart {
  schedule::PieceName name;
  double copied = 0;      // bytes to the host
  bool hands_on = false;  // it is what the next layer reads
};
std::vector<OffloadablePart> offloadable_parts(const config::Config& config,
                                               std::int64_t layer,
                                               Recomputed whole);

// A run's stages, and what each of their layers could offload: asked once for each kind of layer.
class OffloadableLayers {
 public:
  using Make = std::function<std::vector<OffloadablePart>(std::int64_t layer, Recomputed whole)>;
  OffloadableLayers(const config::ModelConfig& model,
                    const std::vector<derive::Stage>& stages,
                    const Make& make);

  std::size_t stages() const { return stages_.size(); }
  int layers(std::size_t stage) const { return stages_[stage].layers; }

  // The layers of a stage that can offload a part, in their order, each by its place.
  template <typename Visit>
  void for_each(std::size_t stage, const schedule::PieceName& name, const Visit& visit) const;

 private:
  const std::vector<derive::Stage>& stages_;
  std::deque<std::vector<OffloadablePart>> kinds_;
  std::vector<std::vector<const std::vector<OffloadablePart>*>> parts_;  // by stage and place
};

// What model.offload_modules name, with the shares of layers that the config's link carries; none
// where nothing is offloaded.
OffloadedParts offloaded_parts(const config::Config& config, const OffloadableLayers& layers);
OffloadedParts offloaded_parts(const config::Config& config);

// By stage and layer of it, the parts that go.
using OffloadedStages = std::vector<std::vector<std::vector<schedule::PieceName>>>;
OffloadedStages offloaded_of_stages(const OffloadableLayers& layers, const OffloadedParts& parts);

// A step whose config offloads nothing itself, with these parts offloaded.
schedule::Detail detail_with(const OffloadedParts& parts);

// Whether a whole layer runs again, by its place in its stage.
Recomputed recomputed_at(const config::ModelConfig& model, int place);

}  // namespace weft::plan
