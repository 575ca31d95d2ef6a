// The graphs a config asks for: the plain order, and the passes its knobs name.
#pragma once

#include <string>
#include <vector>

#include "weft/config/config.h"
#include "weft/grid/grid.h"
#include "weft/schedule/anatomy.h"
#include "weft/schedule/builders/turns.h"
#include "weft/schedule/graph.h"
#include "weft/schedule/verify.h"

namespace weft::schedule {

// What every rank of one pipeline stage does.
struct RankPlan {
  Anatomy anatomy;
  PipelineShape shape;
  Graph training, forward;
  SendsOver training_over, forward_over;  // see note_sends_over; empty: nothing is known
};

// The turns of a pipeline rank, of whom there are `dp` that do the same with other tokens.
PipelineShape pipeline_shape(const config::Config& config, std::int64_t dp, int pp_rank);

// One plan for each pipeline rank; the config has been validated.
std::vector<RankPlan> plan_step(const config::Config& config,
                                const grid::Grid& grid,
                                config::RowBudget budget = config::RowBudget::AsConfigured,
                                const Detail& detail = {});

// Every plan alone and all together; what is wrong, naming nodes.
std::vector<std::string> verify_plan(const std::vector<RankPlan>& plans);

// Notes in the plan of that pipeline rank what its receives tell of its sends; after verify_plan.
void note_sends_over(std::vector<RankPlan>& plans, int pp_rank);

// What NCCL needs besides: see verify_calls in verify.h.
std::vector<std::string> verify_plan_calls(const std::vector<RankPlan>& plans);

// Who takes part in an entry's operation, by pipeline rank: one rank stands for all of its stage.
std::vector<int> stages_of_entry(const derive::Pipeline& pipeline, int pp_rank, const Entry& entry);

// The same by world rank.
std::vector<int> ranks_of_entry(const grid::Grid& grid,
                                const derive::Pipeline& pipeline,
                                int rank,
                                const Entry& entry);

}  // namespace weft::schedule
