#include "weft/train/log/board.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/derive/derived.h"
#include "weft/train/log/run_folder.h"

namespace weft::train {
namespace {

using base::text;
using events::Scalar;

struct StepScalars {
  std::vector<events::Scalar> by_step;
  std::vector<events::Scalar> by_samples;  // tags end in " vs samples"
};

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

// `memory`: the pool of rank 0.
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

// Losses of the step's evaluations; empty without one.
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

// Means over the traced steps.
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

std::filesystem::path writable_folder(const config::Config& config) {
  std::filesystem::path folder = config.logger.tensorboard_dir;
  make_writable_folder(folder, "logger.tensorboard_dir");
  return folder;
}

void move_to_end(std::vector<events::Scalar> from, std::vector<events::Scalar>& to) {
  std::ranges::move(from, std::back_inserter(to));
}

}  // namespace

Board::Board(const TrainRequest& request, std::int64_t step) : request_(&request) {
  file_.emplace(writable_folder(request.config), step);
}

void Board::keep(const StepRecord& record, const tensor::Pool& memory) {
  const config::Config& config = request_->config;
  StepScalars shown = evaluation_scalars(record, config);
  if (record.iteration % config.logger.tensorboard_log_interval == 0) {
    StepScalars step = step_scalars(record, config, memory);
    move_to_end(std::move(step.by_step), shown.by_step);
    move_to_end(std::move(step.by_samples), shown.by_samples);
  }
  append({{.step = record.iteration, .scalars = std::move(shown.by_step)},
          {.step = record.consumed_samples, .scalars = std::move(shown.by_samples)}});
}

void Board::keep(const trace::Exposure& exposure, std::int64_t step) {
  append({{.step = step, .scalars = exposure_scalars(exposure)}});
}

void Board::go_back(std::int64_t step) {
  file_.reset();  // releases the lock on the events that are cut
  try {
    file_.emplace(writable_folder(request_->config), step);
  } catch (const base::SystemError& error) {
    request_->log(text("warning: {}", error.what()));
    why_lost_ = error.what();
  }
}

void Board::append(std::vector<events::Event> all) {
  std::erase_if(all, [](const events::Event& event) { return event.scalars.empty(); });
  if (all.empty()) return;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  for (events::Event& event : all) event.seconds = std::chrono::duration<double>(now).count();
  ++writes_;
  if (!file_) {
    ++lost_writes_;
    return;
  }
  try {
    file_->append(all);
  } catch (const base::SystemError& error) {
    if (lost_writes_++ == 0) request_->log(text("warning: {}", error.what()));
    why_lost_ = error.what();
  }
}

std::string Board::failure() const {
  if (lost_writes_ == 0) return "";
  return text("logger.tensorboard_dir lacks {} of {}: {}",
              lost_writes_,
              base::counted(writes_, "step"),
              why_lost_);
}

}  // namespace weft::train
