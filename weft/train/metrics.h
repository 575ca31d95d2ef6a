// What a run tells about its steps: the log line people parse, and a line of JSON a step.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "weft/base/json.h"
#include "weft/train/router_totals.h"

namespace weft::train {

// Of one set of dataset.valid_data_path.
struct SetLoss {
  std::string name;
  double loss = 0;
};

struct StepRecord {
  std::int64_t iteration = 0;  // from 1
  std::int64_t iterations = 0;
  std::int64_t consumed_samples = 0;
  std::optional<double> epoch;  // of the training samples, so far; where the data has an end
  std::int64_t global_batch_size = 0;
  double elapsed_ms = 0;
  double tokens_per_second = 0;
  double tflops_per_rank = 0;
  double learning_rate = 0;
  double loss = 0;
  double gradient_norm = 0;
  std::optional<double> parameter_norm;        // see ModelStatistics
  std::optional<std::int64_t> gradient_zeros;  // likewise
  std::optional<double> balance_loss, sequence_balance_loss, global_balance_loss,
      z_loss;                             // where the model has them
  std::vector<ExpertLoads> expert_loads;  // by MoE layer
  std::optional<double> eval_loss;        // on held-out data, where this step evaluated
  std::vector<SetLoss> eval_losses;       // where this step evaluated
  std::optional<double> test_loss;        // on the test split, after the last step
  std::int64_t not_finite = 0;            // steps so far that changed nothing
  bool skipped = false;                   // this is one of them
  bool pretended = false;                 // one rank ran, and its peers were only taken to be there
  // Steps so far that ran again without their row budget; where there is one.
  std::optional<std::int64_t> repeated;
};

// The steps since the last log line: Megatron's line gives the mean loss of those that changed
// something, the mean time of a step, and how many changed nothing.
class LogInterval {
 public:
  // `not_finite`: the steps before it that changed nothing.
  explicit LogInterval(std::int64_t not_finite = 0)
      : not_finite_before_(not_finite), not_finite_(not_finite) {}
  void add(const StepRecord& record);
  StepRecord mean(const StepRecord& last) const;

 private:
  std::int64_t not_finite_before_, not_finite_;
  std::int64_t steps_ = 0;
  double loss_ = 0, elapsed_ms_ = 0;  // the loss of steps that changed something
  RouterLosses router_;
};

// Megatron's line, its fields in its order, so that its users' parsers work; behind them what
// people ask for: tokens a second of all ranks, the epoch and the time left.
std::string log_line(const StepRecord& record, std::chrono::system_clock::time_point now);

base::Json metrics_json(const StepRecord& record);
base::Json to_json(const std::vector<ExpertLoads>& loads);
base::Json to_json(const std::vector<SetLoss>& losses);

// 3725 -> "1:02:05".
std::string clock_text(double seconds);

}  // namespace weft::train
