// Output of a run per step: the log line that users parse, and a line of JSON.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "weft/base/json.h"
#include "weft/train/log/router_totals.h"

namespace weft::train {

// Loss on one set of dataset.valid_data_path.
struct SetLoss {
  std::string name;
  double loss = 0;
};

struct StepRecord {
  std::int64_t iteration = 0;  // from 1
  std::int64_t iterations = 0;
  std::int64_t consumed_samples = 0;
  std::optional<double> epoch;  // passes over the training samples so far; nullopt: endless data
  std::int64_t global_batch_size = 0;
  double elapsed_ms = 0;
  double tokens_per_second = 0;
  double tflops_per_rank = 0;
  double learning_rate = 0;
  double loss = 0;
  double gradient_norm = 0;
  std::optional<double> parameter_norm;        // see ModelStatistics
  std::optional<std::int64_t> gradient_zeros;  // see ModelStatistics
  std::optional<double> balance_loss, sequence_balance_loss, global_balance_loss,
      z_loss;                             // nullopt: the model has no such loss
  std::vector<ExpertLoads> expert_loads;  // by MoE layer
  std::optional<double> eval_loss;   // on held-out data; nullopt: no evaluation after this step
  std::vector<SetLoss> eval_losses;  // empty: no evaluation after this step
  std::optional<double> test_loss;   // on the test split, after the last step
  std::int64_t not_finite = 0;       // skipped steps so far
  bool skipped = false;              // this step was skipped: it changed nothing
  bool pretended = false;            // true if only one rank ran and its peers were pretended
  // Steps so far that ran again without a row budget; nullopt: no budget.
  std::optional<std::int64_t> repeated;
};

// Steps since the last log line. Megatron's line has the mean loss without skipped steps, the mean
// step time and the number of skipped steps.
class LogInterval {
 public:
  // `not_finite`: steps skipped before this run.
  explicit LogInterval(std::int64_t not_finite = 0)
      : not_finite_before_(not_finite), not_finite_(not_finite) {}
  void add(const StepRecord& record);
  StepRecord mean(const StepRecord& last) const;

 private:
  std::int64_t not_finite_before_, not_finite_;
  std::int64_t steps_ = 0;
  double loss_ = 0, elapsed_ms_ = 0;  // loss of the steps that were not skipped
  RouterLosses router_;
};

// Megatron's log line with its fields in its order, for existing parsers. Appended: tokens per
// second of all ranks, the epoch and the remaining time.
std::string log_line(const StepRecord& record, std::chrono::system_clock::time_point now);

base::Json metrics_json(const StepRecord& record);
base::Json to_json(const std::vector<ExpertLoads>& loads);
base::Json to_json(const std::vector<SetLoss>& losses);

// 3725 -> "1:02:05".
std::string clock_text(double seconds);

}  // namespace weft::train
