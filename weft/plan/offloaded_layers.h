// Which parts of which layers of a run wait in the host's memory, without its graph: as the pass
// that offloads deals them out (schedule/passes/offload.h), by as many layers as the link carries
// (schedule/offload_share.h).
#pragma once

#include <cstdint>
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

// A run's stages, and what each of its layers could offload, by its number and its place in the
// stage.
struct OffloadableLayers {
  const std::vector<derive::Stage>& stages;
  std::function<const std::vector<OffloadablePart>&(std::int64_t layer, int place)> parts;
};

// What model.offload_modules name, with the shares of layers that the config's link carries; none
// where nothing is offloaded.
OffloadedParts offloaded_parts(const config::Config& config, const OffloadableLayers& layers);
OffloadedParts offloaded_parts(const config::Config& config);

// Of each layer of a stage, the parts that go.
std::vector<std::vector<schedule::PieceName>> offloaded_of_stage(const derive::Stage& stage,
                                                                 const OffloadableLayers& layers,
                                                                 const OffloadedParts& parts);

// A step whose config offloads nothing itself, with these parts offloaded.
schedule::Detail detail_with(const OffloadedParts& parts);

// Whether a whole layer runs again, by its place in its stage.
Recomputed recomputed_at(const config::ModelConfig& model, int place);

}  // namespace weft::plan
