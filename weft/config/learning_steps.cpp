#include "weft/config/learning_steps.h"

namespace weft::config {
namespace {

double steps_of(std::int64_t samples, const Config& config) {
  return static_cast<double>(samples) / static_cast<double>(config.train.global_batch_size);
}

}  // namespace

double warmup_steps(const Config& config) {
  const SchedulerConfig& scheduler = config.scheduler;
  if (scheduler.lr_warmup_fraction) return *scheduler.lr_warmup_fraction * decay_steps(config);
  if (scheduler.lr_warmup_samples > 0) return steps_of(scheduler.lr_warmup_samples, config);
  return static_cast<double>(scheduler.lr_warmup_iters);
}

double decay_steps(const Config& config) {
  const SchedulerConfig& scheduler = config.scheduler;
  if (scheduler.lr_decay_samples) return steps_of(*scheduler.lr_decay_samples, config);
  if (scheduler.lr_decay_iters) return static_cast<double>(*scheduler.lr_decay_iters);
  if (config.train.train_samples) return steps_of(*config.train.train_samples, config);
  return static_cast<double>(config.train.train_iters);
}

double wsd_steps(const Config& config) {
  const SchedulerConfig& scheduler = config.scheduler;
  if (scheduler.lr_wsd_decay_samples) return steps_of(*scheduler.lr_wsd_decay_samples, config);
  return static_cast<double>(scheduler.lr_wsd_decay_iters.value_or(0));
}

}  // namespace weft::config
