// A training run: steps, evaluation, log and metrics, from a config to a run folder.
#pragma once

#include <array>
#include <atomic>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "weft/config/config.h"
#include "weft/tensor/pool.h"
#include "weft/trace/exposure.h"
#include "weft/train/metrics.h"

namespace weft::train {

struct TrainRequest {
  config::Config config;          // validated
  std::string name;               // of the recipe, for the run folder
  const std::atomic<bool>* stop;  // set to end after the current step
  // What rank 0 has to say while the run goes on; called on its thread.
  std::function<void(const std::string& line)> log;
  std::function<void(const StepRecord& record)> progress;
  std::function<void(const std::string& error)> report;  // see launch.h
};

struct TrainResult {
  std::int64_t steps = 0;
  double first_loss = 0;
  double final_loss = 0;
  std::optional<double> eval_loss;
  std::vector<ExpertLoads> expert_loads;  // of the last step
  std::optional<std::int64_t> repeated;   // see StepRecord
  double tokens_per_second = 0;           // without the first step, which warms up
  std::filesystem::path run_dir;
  std::optional<std::filesystem::path> trace;
  std::optional<trace::Exposure> exposure;  // with a trace, of all ranks
  bool interrupted = false;
  std::array<std::size_t, tensor::kTags> peak_bytes{};  // of rank 0, by tag
  bool is_rank_zero = false;  // false in a process that holds other ranks only
};

// SystemError naming step, rank and layer where the loss or the gradient norm stops being finite.
TrainResult train(const TrainRequest& request);

}  // namespace weft::train
