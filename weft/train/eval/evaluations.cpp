#include "weft/train/eval/evaluations.h"

#include <utility>

#include "weft/base/text.h"
#include "weft/train/step.h"

namespace weft::train {

Batch read_samples(const Engine& engine,
                   const data::Dataset& dataset,
                   data::Split split,
                   std::int64_t first) {
  return read_batch(engine.share(),
                    engine.config().model.seq_length,
                    [&](std::int64_t sequence, std::span<std::int32_t> tokens) {
                      dataset.read(split, static_cast<std::uint64_t>(first + sequence), tokens);
                    });
}

Evaluations::Ended Evaluations::evaluate(StepRecord& record) {
  const std::int64_t interval = engine_.config().train.eval_interval;
  if (engine_.config().train.eval_iters == 0) return Ended::Done;
  const bool last = record.iteration == record.iterations;
  if (interval > 0 && (record.iteration % interval == 0 || last)) validate(record);
  if (last && dataset_.samples(data::Split::Test) > 0) {
    record.test_loss = test_loss_ = loss_on(dataset_, data::Split::Test);
  }
  return is_stopped_ ? Ended::Stopped : Ended::Done;
}

std::string Evaluations::evaluate_first() {
  if (engine_.config().train.eval_interval <= 0) return "";
  StepRecord before;
  validate(before);
  first_loss_ = std::exchange(eval_loss_, std::nullopt);
  eval_losses_.clear();
  std::string told;
  if (before.eval_loss) told += base::text(" held-out {:.4f}", *before.eval_loss);
  for (const SetLoss& set : before.eval_losses) {
    told += base::text("{} {} {:.4f}", told.empty() ? "" : ",", set.name, set.loss);
  }
  return told.empty() ? "" : "eval      before the first step:" + told;
}

// Evaluates held-out data and every set.
void Evaluations::validate(StepRecord& record) {
  if (dataset_.samples(data::Split::Eval) > 0) {
    record.eval_loss = loss_on(dataset_, data::Split::Eval);
  }
  for (const EvaluationData& set : sets_) {
    const std::optional<double> loss = loss_on(*set.dataset, data::Split::Train);
    if (loss) record.eval_losses.push_back({.name = set.name, .loss = *loss});
  }
  if (record.eval_loss) eval_loss_ = record.eval_loss;
  if (!record.eval_losses.empty()) eval_losses_ = record.eval_losses;
}

// Mean loss on a split; nullopt: stopped.
std::optional<double> Evaluations::loss_on(const data::Dataset& dataset, data::Split split) {
  const config::TrainConfig& train = engine_.config().train;
  double sum = 0;
  for (std::int64_t i = 0; i < train.eval_iters && !is_stopped_; ++i) {
    const Batch batch = read_samples(engine_, dataset, split, i * train.global_batch_size);
    const StepTotals totals = evaluate_step(engine_, {.batch = batch, .stop = stop_});
    sum += totals.loss;
    is_stopped_ = totals.stop_requested;
  }
  if (is_stopped_) return std::nullopt;
  return sum / static_cast<double>(train.eval_iters);
}

}  // namespace weft::train
