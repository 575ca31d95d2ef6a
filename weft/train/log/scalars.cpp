#include "weft/train/log/scalars.h"

#include <algorithm>
#include <cmath>

#include "weft/base/text.h"
#include "weft/derive/derived.h"
#include "weft/events/event_file.h"

namespace weft::train {
namespace {

using base::text;
using events::Scalar;

// Megatron's cap for perplexities.
constexpr double kLargestLoss = 20;

void add_both(StepScalars& scalars, const std::string& tag, double value) {
  scalars.by_step.push_back({.tag = tag, .value = value});
  scalars.by_samples.push_back({.tag = tag + std::string(events::kVersusSamples), .value = value});
}

void add_router(const StepRecord& record, std::vector<Scalar>& scalars) {
  const auto add = [&](const char* tag, const std::optional<double>& loss) {
    if (loss) scalars.push_back({.tag = tag, .value = *loss});
  };
  add("load_balancing_loss", record.balance_loss);
  add("seq_load_balancing_loss", record.sequence_balance_loss);
  add("global_load_balancing_loss", record.global_balance_loss);
  add("z_loss", record.z_loss);
  for (const ExpertLoads& load : record.expert_loads) {
    const auto add_load = [&](const char* what, double value) {
      scalars.push_back(
          {.tag = text("moe/expert_load_{}_layer_{}", what, load.layer), .value = value});
    };
    add_load("max", load.max);
    add_load("p95", load.p95);
    add_load("p50", load.p50);
    add_load("dropped", static_cast<double>(load.dropped));
  }
}

void add_memory(const tensor::Pool& memory, std::vector<Scalar>& scalars) {
  const auto add = [&](const std::string& tag, std::size_t bytes) {
    scalars.push_back({.tag = tag, .value = static_cast<double>(bytes)});
  };
  add("mem-reserved-bytes", memory.reserved());
  add("mem-allocated-bytes", memory.total().bytes);
  add("mem-max-allocated-bytes", memory.total().peak);
  for (int i = 0; i < tensor::kTags; ++i) {
    const auto tag = static_cast<tensor::Tag>(i);
    add(text("mem-max-allocated-bytes/{}", tensor::name_of(tag)), memory.use(tag).peak);
  }
}

}  // namespace

StepScalars step_scalars(const StepRecord& record,
                         const config::Config& config,
                         const tensor::Pool& memory) {
  StepScalars scalars;
  add_both(scalars, "lm loss", record.loss);
  add_both(scalars, "learning-rate", record.learning_rate);
  add_both(scalars, "batch-size", static_cast<double>(record.global_batch_size));
  add_both(scalars, "grad-norm", record.gradient_norm);
  if (record.parameter_norm) add_both(scalars, "params-norm", *record.parameter_norm);
  if (record.gradient_zeros) {
    add_both(scalars, "num-zeros", static_cast<double>(*record.gradient_zeros));
  }
  add_both(scalars, "loss-scale", 1);
  add_both(scalars, "world-size", static_cast<double>(derive::layout_of(config).world));
  add_both(scalars, "iteration-time", record.elapsed_ms / 1e3);
  scalars.by_step.push_back({.tag = "throughput", .value = record.tflops_per_rank});
  scalars.by_step.push_back({.tag = "tokens-per-second", .value = record.tokens_per_second});
  scalars.by_step.push_back(
      {.tag = "skipped-iterations", .value = static_cast<double>(record.not_finite)});
  if (record.epoch) scalars.by_step.push_back({.tag = "epoch", .value = *record.epoch});
  if (record.repeated) {
    scalars.by_step.push_back(
        {.tag = "repeated-steps", .value = static_cast<double>(*record.repeated)});
  }
  add_router(record, scalars.by_step);
  add_memory(memory, scalars.by_step);
  return scalars;
}

StepScalars evaluation_scalars(const StepRecord& record, const config::Config& config) {
  StepScalars scalars;
  const auto add = [&](const std::string& tag, double loss) {
    add_both(scalars, tag, loss);
    if (!config.logger.log_validation_ppl_to_tensorboard) return;
    add_both(scalars, tag + " ppl", std::exp(std::min(loss, kLargestLoss)));
  };
  if (record.eval_loss) add("lm loss validation", *record.eval_loss);
  double sum = 0;
  for (const SetLoss& set : record.eval_losses) {
    add("lm loss validation " + set.name, set.loss);
    sum += set.loss;
  }
  if (record.eval_losses.size() > 1) {
    add("lm loss validation (aggregated)", sum / static_cast<double>(record.eval_losses.size()));
  }
  if (record.test_loss) add("lm loss test", *record.test_loss);
  return scalars;
}

std::vector<Scalar> exposure_scalars(const trace::Exposure& exposure) {
  std::vector<Scalar> scalars;
  const auto add = [&](const std::string& kind, const trace::CommunicationTime& time) {
    scalars.push_back({.tag = "communication-ms/" + kind, .value = time.communication_ms});
    scalars.push_back({.tag = "exposed-communication-ms/" + kind, .value = time.exposed_ms});
    scalars.push_back({.tag = "hidden-any/" + kind, .value = time.hidden_any});
    scalars.push_back({.tag = "hidden-gemm/" + kind, .value = time.hidden_gemm});
  };
  for (const auto& [kind, time] : exposure.kinds) add(kind, time);
  add("total", exposure.total);
  return scalars;
}

}  // namespace weft::train
