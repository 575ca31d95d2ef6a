// Prediction of a run's memory: the engine's own step on a device without memory or arithmetic
// (kernels::make_dry_device). The pool counts it as it counts a real step.
#pragma once

#include <vector>

#include "weft/rules/judged_config.h"
#include "weft/schedule/plan.h"
#include "weft/train/log/memory_log.h"

namespace weft::train {

struct PredictedMemory {
  int rank = 0;
  BytesByTag peak_bytes{};           // each tag's own peak, at different times
  std::size_t peak_total_bytes = 0;  // peak of the sum over tags
  std::size_t snapshot_bytes = 0;    // host memory for the copy of an asynchronous save
  PeakMoment at_peak{};
  std::vector<BytesByTag> timeline{};  // training step by node, in issue order
};

// Peaks of one rank's steps, as `weft train` counts them. Exact if every expert gets the same
// number of rows, and with one expert-parallel rank for any routing. Reading and saving weights
// come on top. `plan`: the rank's, from verified_plans. `left_out`: micro-batches cut from this dry
// step (plan::fewest_micro_batches); each adds the bytes it holds for the whole step.
PredictedMemory predict_memory(const rules::JudgedConfig& config,
                               int rank,
                               const schedule::RankPlan& plan,
                               std::int64_t left_out = 0);

// Memory of the first rank of every pipeline stage; `plans` has one per stage.
std::vector<PredictedMemory> predict_memory(const rules::JudgedConfig& config,
                                            const std::vector<schedule::RankPlan>& plans,
                                            std::int64_t left_out = 0);
std::vector<PredictedMemory> predict_memory(const rules::JudgedConfig& config);

// Host memory for the copies of an asynchronous save: bytes for each of `ranks`, as
// BackgroundSaves::bytes() counts them. The states of all ranks decide what each rank writes, so
// all are computed.
std::vector<std::size_t> predict_snapshots(const rules::JudgedConfig& config,
                                           const std::vector<int>& ranks);

}  // namespace weft::train
