// Pipeline stages: the layers of each, and the places of embedding and loss.
//
// A stage is a chunk of layers; a pipeline rank holds vpp stages. A micro-batch visits the stages,
// and so the layers, in ascending order; the placement decides which ranks it visits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "weft/config/config.h"

namespace weft::derive {

struct Stage {
  int first_layer = 0;
  int layers = 0;      // may be 0
  int mtp_layers = 0;  // layers of multi-token prediction
  bool embedding = false;
  bool loss = false;

  bool operator==(const Stage&) const = default;
};

struct Stages {
  std::vector<Stage> all;               // pp * vpp; empty if there are complaints
  std::vector<std::string> complaints;  // on the layout text or the counts
};

// From model.pipeline_model_parallel_layout, else stages as even as model.* asks for.
Stages stages_of(const config::ModelConfig& model);

// Number of stages in model.pipeline_model_parallel_layout; nullopt: unreadable.
std::optional<std::int64_t> stages_in_layout(const config::ModelConfig& model);

// Placement of the stages on ranks.
enum class Placement {
  Ring,  // stage s on rank s % pp: wraps from the last rank to the first
  V,     // rank r has stages r and 2 pp - 1 - r: down the ranks and up again
};

// Stages of each pipeline rank.
struct Pipeline {
  int pp = 1, vpp = 1;
  Placement placement = Placement::Ring;

  int stages() const { return pp * vpp; }
  int rank_of(int stage) const;
  std::vector<int> stages_of(int rank) const;  // ascending
  // Rank with the head.
  int loss_rank() const { return rank_of(stages() - 1); }
};
Pipeline pipeline_of(const config::ModelConfig& model, Placement placement);
Pipeline pipeline_of(const config::Config& config);
Placement placement_of(const config::Config& config);

// runtime.pipeline_schedule; auto: the schedule that the other keys ask for.
config::PipelineSchedule pipeline_schedule(const config::Config& config);

std::int64_t virtual_stages(const config::ModelConfig& model);
// Consecutive micro-batches of a chunk in a virtual pipeline.
std::int64_t micro_batch_group(const config::ModelConfig& model);

// True if sends and receives between stages run under compute: the user's choice, else true if the
// schedule leaves the rank other work meanwhile.
bool overlaps_p2p(const config::Config& config);

}  // namespace weft::derive
