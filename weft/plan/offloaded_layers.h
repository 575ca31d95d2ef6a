// Which parts of which layers of a run wait in the host's memory, without its graph: as the pass
// that offloads deals them out (schedule/passes/offload.h).
#pragma once

#include <cstdint>
#include <vector>

#include "weft/config/config.h"
#include "weft/derive/pipeline.h"
#include "weft/schedule/anatomy.h"

namespace weft::plan {

using OffloadedParts = std::vector<schedule::OffloadedPart>;

// What model.offload_modules name, with the shares of layers that the config's link carries; none
// where nothing is offloaded.
OffloadedParts offloaded_parts(const config::Config& config);

// Of each layer of a stage, the parts that go.
std::vector<std::vector<schedule::PieceName>> offloaded_of_stage(const config::ModelConfig& model,
                                                                 const derive::Stage& stage,
                                                                 const OffloadedParts& parts);

// A step of `model`, whose own modules to offload are left out, with these parts offloaded.
schedule::Detail detail_with(const OffloadedParts& parts, const config::ModelConfig& model);

}  // namespace weft::plan
