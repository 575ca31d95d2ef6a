// What a run tells about its steps: the log line people parse, and a line of JSON a step.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "weft/base/json.h"
#include "weft/train/router_totals.h"

namespace weft::train {

struct StepRecord {
  std::int64_t iteration = 0;  // from 1
  std::int64_t iterations = 0;
  std::int64_t consumed_samples = 0;
  std::int64_t global_batch_size = 0;
  double elapsed_ms = 0;
  double tokens_per_second = 0;
  double tflops_per_rank = 0;
  double learning_rate = 0;
  double loss = 0;
  double gradient_norm = 0;
  std::optional<double> balance_loss, sequence_balance_loss, global_balance_loss,
      z_loss;                             // where the model has them
  std::vector<ExpertLoads> expert_loads;  // by MoE layer
  std::optional<double> eval_loss;        // where this step evaluated
  std::int64_t not_finite = 0;            // steps so far that changed nothing
  // Steps so far that ran again without their row budget; where there is one.
  std::optional<std::int64_t> repeated;
};

// The steps since the last log line: Megatron's line gives the mean loss and the mean time of a
// step.
class LogInterval {
 public:
  void add(const StepRecord& record);
  StepRecord mean(const StepRecord& last) const;

 private:
  std::int64_t steps_ = 0;
  double loss_ = 0, elapsed_ms_ = 0;
  RouterLosses router_;
};

// Megatron's line, byte for byte, so that its users' parsers work.
std::string log_line(const StepRecord& record, std::chrono::system_clock::time_point now);

base::Json metrics_json(const StepRecord& record);
base::Json to_json(const std::vector<ExpertLoads>& loads);

// metrics.jsonl: a whole line at a time, so that a reader never sees half a record.
class MetricsFile {
 public:
  explicit MetricsFile(const std::filesystem::path& path);
  void append(const base::Json& record);

 private:
  std::filesystem::path path_;
  std::ofstream file_;
};

}  // namespace weft::train
