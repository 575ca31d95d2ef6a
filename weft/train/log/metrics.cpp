#include "weft/train/log/metrics.h"

#include <fmt/chrono.h>

#include <algorithm>
#include <cmath>

#include "weft/base/text.h"

namespace weft::train {

using base::text;

namespace {

// Three significant digits with at least one decimal, as Megatron prints it.
std::string rate_text(double value) {
  const double digits = value > 0 ? 2 - std::floor(std::log10(value)) : 1;
  return text("{:.{}f}", value, static_cast<int>(std::clamp(digits, 1.0, 9.0)));
}

// Some machines produce NaNs with a sign, which carries no meaning.
double unsigned_nan(double value) { return std::isnan(value) ? std::abs(value) : value; }

}  // namespace

std::string clock_text(double seconds) {
  const double known = std::isfinite(seconds) ? seconds : 0.0;
  const auto whole = static_cast<std::int64_t>(std::clamp(std::round(known), 0.0, 1e15));
  return text("{}:{:02d}:{:02d}", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string log_line(const StepRecord& record, std::chrono::system_clock::time_point now) {
  const auto since = now.time_since_epoch();
  const auto seconds = std::chrono::floor<std::chrono::seconds>(since);
  const auto micros =
      std::chrono::duration_cast<std::chrono::microseconds>(since - seconds).count();
  std::string line = text(" [{:%Y-%m-%d %H:%M:%S}.{:06d}]",
                          fmt::localtime(static_cast<std::time_t>(seconds.count())),
                          micros);
  line += text(" iteration {:8d}/{:8d} |", record.iteration, record.iterations);
  line += text(" consumed samples: {:12d} |", record.consumed_samples);
  line += text(" elapsed time per iteration (ms): {:.1f} |", record.elapsed_ms);
  line += text(" throughput per GPU (TFLOP/s/GPU): {} |", rate_text(record.tflops_per_rank));
  line += text(" learning rate: {:.6E} |", record.learning_rate);
  line += text(" global batch size: {:5d} |", record.global_batch_size);
  line += text(" lm loss: {:.6E} |", unsigned_nan(record.loss));
  const auto add = [&](const char* name, const std::optional<double>& loss) {
    if (loss) line += text(" {}: {:.6E} |", name, unsigned_nan(*loss));
  };
  add("load_balancing_loss", record.balance_loss);
  add("seq_load_balancing_loss", record.sequence_balance_loss);
  add("global_load_balancing_loss", record.global_balance_loss);
  add("z_loss", record.z_loss);
  line += text(" loss scale: {:.1f} |", 1.0);
  line += text(" grad norm: {:.3f} |", unsigned_nan(record.gradient_norm));
  if (record.gradient_zeros) line += text(" num zeros: {} |", *record.gradient_zeros);
  if (record.parameter_norm) line += text(" params norm: {:.3f} |", *record.parameter_norm);
  line += text(" number of skipped iterations: {:3d} |", record.not_finite);
  line += text(" number of nan iterations: {:3d} |", record.not_finite);
  line += text(" tokens/s: {:.0f} |", record.tokens_per_second);
  if (record.epoch) line += text(" epoch: {:.2f} |", *record.epoch);
  line += text(" time left: {} |",
               clock_text(static_cast<double>(record.iterations - record.iteration) *
                          record.elapsed_ms / 1e3));
  return line;
}

void LogInterval::add(const StepRecord& record) {
  ++steps_;
  elapsed_ms_ += record.elapsed_ms;
  const bool changed_nothing = record.not_finite > not_finite_;
  not_finite_ = record.not_finite;
  if (changed_nothing) return;
  loss_ += record.loss;
  router_.batch += record.balance_loss.value_or(0);
  router_.sequence += record.sequence_balance_loss.value_or(0);
  router_.global += record.global_balance_loss.value_or(0);
  router_.z += record.z_loss.value_or(0);
}

StepRecord LogInterval::mean(const StepRecord& last) const {
  const auto steps = static_cast<double>(steps_);
  StepRecord record = last;
  record.not_finite = not_finite_ - not_finite_before_;
  const auto good = static_cast<double>(steps_ - record.not_finite);  // 0: all means are NaN
  record.loss = loss_ / good;
  const auto average = [&](std::optional<double>& loss, double sum) {
    if (loss) loss = sum / good;
  };
  average(record.balance_loss, router_.batch);
  average(record.sequence_balance_loss, router_.sequence);
  average(record.global_balance_loss, router_.global);
  average(record.z_loss, router_.z);
  record.elapsed_ms = elapsed_ms_ / steps;
  const double faster = last.elapsed_ms / record.elapsed_ms;
  record.tokens_per_second *= faster;
  record.tflops_per_rank *= faster;
  return record;
}

base::Json metrics_json(const StepRecord& record) {
  base::Json json{{"iteration", record.iteration},
                  {"consumed_samples", record.consumed_samples},
                  {"iteration_time_ms", record.elapsed_ms},
                  {"tokens_per_second", record.tokens_per_second},
                  {"throughput_tflops_per_rank", record.tflops_per_rank},
                  {"learning_rate", record.learning_rate},
                  {"lm_loss", record.loss},
                  {"grad_norm", record.gradient_norm}};
  const auto add = [&](const char* name, const std::optional<double>& loss) {
    if (loss) json[name] = *loss;
  };
  add("load_balancing_loss", record.balance_loss);
  add("seq_load_balancing_loss", record.sequence_balance_loss);
  add("global_load_balancing_loss", record.global_balance_loss);
  add("z_loss", record.z_loss);
  add("params_norm", record.parameter_norm);
  if (record.gradient_zeros) json["num_zeros"] = *record.gradient_zeros;
  add("eval_loss", record.eval_loss);
  if (!record.eval_losses.empty()) json["eval_losses"] = to_json(record.eval_losses);
  add("test_loss", record.test_loss);
  json["skipped_iterations"] = record.not_finite;
  if (record.skipped) json["skipped"] = true;
  if (record.epoch) json["epoch"] = *record.epoch;
  if (record.repeated) json["repeated_steps"] = *record.repeated;
  if (!record.expert_loads.empty()) json["expert_loads"] = to_json(record.expert_loads);
  if (record.pretended) json["pretended"] = true;
  return json;
}

base::Json to_json(const std::vector<ExpertLoads>& loads) {
  base::Json rows = base::Json::array();
  for (const ExpertLoads& load : loads) {
    rows.push_back({{"layer", load.layer},
                    {"max", load.max},
                    {"p95", load.p95},
                    {"p50", load.p50},
                    {"dropped", load.dropped}});
  }
  return rows;
}

base::Json to_json(const std::vector<SetLoss>& losses) {
  base::Json by_name = base::Json::object();
  for (const SetLoss& set : losses) by_name[set.name] = set.loss;
  return by_name;
}

}  // namespace weft::train
