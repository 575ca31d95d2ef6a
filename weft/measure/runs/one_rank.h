// Engine and data of a run of one rank, for benches of its steps.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>

#include "weft/data/dataset.h"
#include "weft/rules/judged_config.h"
#include "weft/train/engine.h"
#include "weft/train/step.h"

namespace weft::measure {

class OneRank {
 public:
  explicit OneRank(train::Engine& engine);

  train::Engine& engine() const { return engine_; }
  const config::Config& config() const { return engine_.config(); }

  // Batch of the share's sequences, from sequence `first` of the dataset.
  train::Batch batch(const train::Share& share, std::int64_t first) const;
  train::Batch global_batch(std::int64_t step) const;
  // Trains a step. ConfigError if a row budget was exceeded.
  train::StepTotals train(const train::Batch& batch,
                          std::int64_t step,
                          exec::Tracing tracing = exec::Tracing::Off) const;

  // Writes the weights as a Hugging Face model and the first `sequences` as tokens.i32, (sequences,
  // length + 1) int32, for a peer. SystemError if the weights cannot be written.
  void leave_inputs(const std::filesystem::path& folder, std::int64_t sequences) const;

 private:
  void read(std::int64_t sequence, std::span<std::int32_t> tokens) const;

  train::Engine& engine_;
  const std::unique_ptr<data::Dataset> dataset_;
};

// Runs `bench` on the only rank of the config. Stopped passes through.
void on_one_rank(const rules::JudgedConfig& config,
                 const std::function<void(const OneRank& rank)>& bench);

}  // namespace weft::measure
