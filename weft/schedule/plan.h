// Graphs of a config: the plain order, transformed by the passes that its keys select.
#pragma once

#include <string>
#include <vector>

#include "weft/config/config.h"
#include "weft/grid/grid.h"
#include "weft/schedule/anatomy.h"
#include "weft/schedule/builders/turns.h"
#include "weft/schedule/graph.h"
#include "weft/schedule/verify_union.h"

namespace weft::schedule {

// Plan of all ranks of one pipeline stage.
struct RankPlan {
  Anatomy anatomy;
  PipelineShape shape;
  Graph training, forward;
  SendsOver training_over, forward_over;  // see note_sends_over; empty: unknown
};

// Turns of a pipeline rank; `dp` ranks do the same with other tokens.
PipelineShape pipeline_shape(const config::Config& config, std::int64_t dp, int pp_rank);

// One plan per pipeline rank; the config is valid.
std::vector<RankPlan> plan_step(const config::Config& config,
                                const grid::Grid& grid,
                                config::RowBudget budget = config::RowBudget::AsConfigured,
                                const Detail& detail = {});

// Plans of some pipeline ranks, in that order and equal to those of plan_step. Not verified,
// because verify_plan needs all ranks.
std::vector<RankPlan> plan_ranks(const config::Config& config,
                                 const grid::Grid& grid,
                                 const std::vector<int>& pp_ranks,
                                 config::RowBudget budget = config::RowBudget::AsConfigured,
                                 const Detail& detail = {});

// Same plans without the forward-only graphs, for prices of training steps.
std::vector<RankPlan> plan_training(const config::Config& config,
                                    const grid::Grid& grid,
                                    const std::vector<int>& pp_ranks,
                                    config::RowBudget budget = config::RowBudget::AsConfigured,
                                    const Detail& detail = {});

// Verifies every plan alone and all together. Returns errors that name nodes; the first one is
// drawn (fault.h).
std::vector<std::string> verify_plan(const std::vector<RankPlan>& plans);

// Stores in the plan of that pipeline rank the sends that each receive proves complete; after
// verify_plan.
void note_sends_over(std::vector<RankPlan>& plans, int pp_rank);

// Further conditions of NCCL: see verify_calls in verify_union.h.
std::vector<std::string> verify_plan_calls(const std::vector<RankPlan>& plans);

// Members of an entry's operation by pipeline rank: one rank represents its whole stage.
std::vector<int> stages_of_entry(const derive::Pipeline& pipeline, int pp_rank, const Entry& entry);

// Members by world rank.
std::vector<int> ranks_of_entry(const grid::Grid& grid,
                                const derive::Pipeline& pipeline,
                                int rank,
                                const Entry& entry);

}  // namespace weft::schedule
