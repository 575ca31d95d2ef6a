// One run of the harness: trains a config for some steps in this process and measures them.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

#include "weft/config/config.h"
#include "weft/measure/runs/timing_window.h"
#include "weft/rules/judged_config.h"
#include "weft/tensor/pool.h"
#include "weft/trace/exposure/exposure.h"
#include "weft/train/log/metrics.h"

namespace weft::measure {

// Traced steps after the timed ones; tracing takes extra time.
inline constexpr std::int64_t kTracedSteps = 2;

// Config for the harness: `steps` timed steps and the traced ones, without evaluation and saving.
config::Config perf_config(config::Config config, std::int64_t steps);

struct PerfRequest {
  rules::JudgedConfig config;  // from perf_config(); ranks are threads
  std::int64_t steps = 0;
  WindowOptions window;
  std::filesystem::path run_dir;  // for config, metrics and trace
  const std::atomic<bool>* stop;  // set it to end after the current step
  std::function<void(const train::StepRecord& record)> progress;
};

struct PerfRun {
  std::vector<double> step_ms;  // every step before the traced ones
  std::vector<double> losses;
  std::int64_t not_finite = 0;  // skipped steps
  std::int64_t repeated = 0;    // steps that ran again without their row budget
  bool interrupted = false;     // fewer steps than requested
  // nullopt: interrupted before the window had a step.
  std::optional<Window> window;
  std::optional<Steady> steady_ms;
  double tokens_per_second = 0;  // in the window
  double flops_per_second = 0;   // FLOP/s of the model on all ranks, by derive::flops_per_token
  std::optional<trace::Exposure> exposure;              // traced steps
  std::vector<trace::Timeline> timelines;               // traced steps on all ranks
  std::array<std::size_t, tensor::kTags> peak_bytes{};  // on rank 0

  std::size_t total_peak_bytes() const;  // sum of the tags' peaks
};

PerfRun run_perf(const PerfRequest& request);

}  // namespace weft::measure
