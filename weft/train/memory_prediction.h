// How much memory a run needs, before it runs: the engine's own step on a device that has neither
// memory nor arithmetic (kernels::make_dry_device), counted by the pool that counts a real one.
#pragma once

#include <vector>

#include "weft/rules/judged_config.h"
#include "weft/schedule/plan.h"
#include "weft/train/memory_log.h"

namespace weft::train {

struct PredictedMemory {
  int rank = 0;
  BytesByTag peak_bytes{};           // each tag's own, at whatever time
  std::size_t peak_total_bytes = 0;  // of all tags at one time
  std::size_t snapshot_bytes = 0;    // host memory for the copy of an asynchronous save
  PeakMoment at_peak{};
  std::vector<BytesByTag> timeline{};  // of the training step, by node as issued
};

// The peaks of one rank's steps, as `weft train` counts them; exact where every expert gets as many
// rows as any other, and with one expert-parallel rank, whatever the router does. Reading and
// saving weights come on top. `plan`: the rank's, from verified_plans. `left_out`: so many
// micro-batches more has the run, whose order repeats (plan::fewest_micro_batches); they are
// counted with what each of them holds for the whole step.
PredictedMemory predict_memory(const rules::JudgedConfig& config,
                               int rank,
                               const schedule::RankPlan& plan,
                               std::int64_t left_out = 0);

// Of the first rank of every pipeline stage, whose plans these are.
std::vector<PredictedMemory> predict_memory(const rules::JudgedConfig& config,
                                            const std::vector<schedule::RankPlan>& plans,
                                            std::int64_t left_out = 0);
std::vector<PredictedMemory> predict_memory(const rules::JudgedConfig& config);

}  // namespace weft::train
