// Evaluations of a run: losses on data outside the training split.
#pragma once

#include <atomic>

#include "weft/train/engine.h"
#include "weft/train/eval/evaluation_data.h"
#include "weft/train/log/metrics.h"

namespace weft::train {

// This rank's share of a global batch of consecutive samples of a split.
Batch read_samples(const Engine& engine,
                   const data::Dataset& dataset,
                   data::Split split,
                   std::int64_t first);

class Evaluations {
 public:
  // All arguments must outlive it.
  Evaluations(Engine& engine,
              const data::Dataset& dataset,
              const std::vector<EvaluationData>& sets,
              const std::atomic<bool>* stop)
      : engine_(engine), dataset_(dataset), sets_(sets), stop_(stop) {}

  // Runs the evaluations due after this step: held-out data and every set if train.eval_interval
  // says so, and the test split after the last step. Every rank calls it. Stopped: a stop was
  // requested; unfinished evaluations are left out.
  enum class Ended { Done, Stopped };
  Ended evaluate(StepRecord& record);

  // Evaluates the initial weights before the first step if train.eval_interval is set. Returns the
  // log line. Every rank calls it.
  std::string evaluate_first();
  const std::optional<double>& first_loss() const { return first_loss_; }

  // Latest losses.
  const std::optional<double>& eval_loss() const { return eval_loss_; }
  const std::vector<SetLoss>& eval_losses() const { return eval_losses_; }
  const std::optional<double>& test_loss() const { return test_loss_; }

 private:
  void validate(StepRecord& record);
  std::optional<double> loss_on(const data::Dataset& dataset, data::Split split);

  Engine& engine_;
  const data::Dataset& dataset_;
  const std::vector<EvaluationData>& sets_;
  const std::atomic<bool>* stop_;
  bool is_stopped_ = false;
  std::optional<double> first_loss_, eval_loss_, test_loss_;
  std::vector<SetLoss> eval_losses_;
};

}  // namespace weft::train
