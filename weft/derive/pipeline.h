// The stages of a pipeline: which layers each holds, and where embedding and loss are.
//
// A stage is a chunk of layers; a pipeline rank holds vpp of them. Stage s belongs to pipeline rank
// s % pp and is its chunk s / pp, so that a micro-batch visits the stages, and thus the layers, in
// ascending order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "weft/config/config.h"

namespace weft::derive {

struct Stage {
  int first_layer = 0;
  int layers = 0;      // may be none
  int mtp_layers = 0;  // layers of multi-token prediction
  bool embedding = false;
  bool loss = false;

  bool operator==(const Stage&) const = default;
};

struct Stages {
  std::vector<Stage> all;               // pp * vpp; empty where there are complaints
  std::vector<std::string> complaints;  // about the layout text or the counts
};

// From model.pipeline_model_parallel_layout, or else stages as even as model.* asks for.
Stages stages_of(const config::ModelConfig& model);

// Stages that model.pipeline_model_parallel_layout names; nothing where it cannot be read.
std::optional<std::int64_t> stages_in_layout(const config::ModelConfig& model);

std::int64_t virtual_stages(const config::ModelConfig& model);
// Micro-batches a chunk takes in a row, in a virtual pipeline.
std::int64_t micro_batch_group(const config::ModelConfig& model);

// Whether sends and receives between stages run under compute: what the user says, else where
// there is a virtual pipeline.
bool overlaps_p2p(const config::Config& config);

}  // namespace weft::derive
