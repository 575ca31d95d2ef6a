// The stages of a pipeline: which layers each holds, and where embedding and loss are.
//
// A stage is a chunk of layers; a pipeline rank holds vpp of them. A micro-batch visits the stages,
// and thus the layers, in ascending order; which ranks it visits is a matter of placement.
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

// Where a pipeline's stages are.
enum class Placement {
  Ring,  // stage s on rank s % pp: from the last rank on to the first
  V,     // rank r has stages r and 2 pp - 1 - r: down the ranks and up again
};

// Which pipeline rank holds which stage.
struct Pipeline {
  int pp = 1, vpp = 1;
  Placement placement = Placement::Ring;

  int stages() const { return pp * vpp; }
  int rank_of(int stage) const;
  std::vector<int> stages_of(int rank) const;  // ascending
  // The one with the head.
  int loss_rank() const { return rank_of(stages() - 1); }
};
Pipeline pipeline_of(const config::ModelConfig& model, Placement placement);
Pipeline pipeline_of(const config::Config& config);
Placement placement_of(const config::Config& config);

// runtime.pipeline_schedule; where it is auto, what the reference's keys ask for.
config::PipelineSchedule pipeline_schedule(const config::Config& config);

std::int64_t virtual_stages(const config::ModelConfig& model);
// Micro-batches a chunk takes in a row, in a virtual pipeline.
std::int64_t micro_batch_group(const config::ModelConfig& model);

// Whether sends and receives between stages run under compute: what the user says, else where
// the order of turns leaves a rank other work meanwhile.
bool overlaps_p2p(const config::Config& config);

}  // namespace weft::derive
