// Composition of a step's memory, at its peak and over time.
#include "weft/train/log/memory_log.h"

#include <gtest/gtest.h>

#include "tests/train/engine_cases_support.h"
#include "tests/train/train_support.h"
#include "weft/train/guard/memory_prediction.h"

namespace weft::train {
namespace memory_log_test {

std::size_t sum_of(const std::vector<PieceBytes>& pieces) {
  std::size_t sum = 0;
  for (const PieceBytes& piece : pieces) sum += piece.bytes;
  return sum;
}

// Every byte of the peak is attributed, and the step's picture reaches the peak exactly.
void expect_accounted_for(const config::Config& config) {
  for (const PredictedMemory& stage : predict_memory(judged(config))) {
    SCOPED_TRACE(stage.rank);
    EXPECT_EQ(sum_of(stage.at_peak.pieces), stage.peak_total_bytes);
    EXPECT_EQ(total_of(stage.at_peak.bytes), stage.peak_total_bytes);
    EXPECT_EQ(stage.at_peak.phase, Phase::Training);
    ASSERT_LT(stage.at_peak.issued, stage.timeline.size());
    EXPECT_EQ(stage.timeline[stage.at_peak.issued], stage.at_peak.bytes);
    for (const BytesByTag& bytes : stage.timeline) {
      EXPECT_LE(total_of(bytes), stage.peak_total_bytes);
    }
  }
}

TEST(MemoryLog, EveryByteOfAPeakHasAMaker) {
  config::Config config = deep_config();
  config.train.eval_interval = 0;
  config.train.global_batch_size = 8;
  expect_accounted_for(config);
  expect_accounted_for(with_layout(config, {.world = 2, .pp = 2}));
  expect_accounted_for(with_layout(config, {.world = 4, .pp = 2, .vpp = 2}));
  config::Config overlapped = with_layout(config, {.world = 2, .ep = 2});
  to_overlap(overlapped);
  expect_accounted_for(overlapped);
}

TEST(MemoryLog, MicroBatchesInFlightAreThoseOfThePipeline) {
  config::Config config = with_layout(deep_config(), {.world = 4, .pp = 4});
  config.train.eval_interval = 0;
  config.train.global_batch_size = 8;
  std::vector<std::int64_t> in_flight;
  for (const PredictedMemory& stage : predict_memory(judged(config))) {
    in_flight.push_back(stage.at_peak.micro_batches);
  }
  EXPECT_EQ(in_flight, (std::vector<std::int64_t>{4, 3, 2, 1}));
}

// Five rounds of a pipeline with chunks keep as much as longer steps.
TEST(MemoryLog, AShortStepKeepsWhatALongOneDoes) {
  config::Config config = with_layout(deep_config(), {.world = 2, .pp = 2, .vpp = 2});
  config.train.eval_interval = 0;
  const auto kept = [&](std::int64_t micro_batches) {
    config.train.global_batch_size = micro_batches * config.train.micro_batch_size;
    std::vector<std::vector<std::pair<std::string, std::size_t>>> stages;
    for (const PredictedMemory& stage : predict_memory(judged(config))) {
      auto& pieces = stages.emplace_back();
      for (const PieceBytes& piece : stage.at_peak.pieces) {
        if (piece.piece.starts_with("F.")) pieces.emplace_back(piece.piece, piece.bytes);
      }
    }
    return stages;
  };
  EXPECT_EQ(kept(10), kept(24));
}

TEST(MemoryLog, WhatIsGivenBackIsNotAtThePeak) {
  config::Config config = small_config();
  config.train.eval_interval = 0;
  const PredictedMemory alone = predict_memory(judged(config)).front();
  for (const PieceBytes& piece : alone.at_peak.pieces) {
    EXPECT_GT(piece.bytes, 0u) << piece.piece;
    EXPECT_GT(piece.blocks, 0) << piece.piece;
  }
  EXPECT_GT(alone.at_peak.pieces.size(), 3u);
}

}  // namespace memory_log_test
}  // namespace weft::train
