// One run of the harness: a config trained for some steps in this process, and what they cost.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

#include "weft/config/config.h"
#include "weft/measure/timing_window.h"
#include "weft/rules/judged_config.h"
#include "weft/tensor/pool.h"
#include "weft/trace/exposure.h"
#include "weft/train/metrics.h"

namespace weft::measure {

// Steps run after the timed ones under the trace, which costs time of its own.
inline constexpr std::int64_t kTracedSteps = 2;

// What the harness sets in a config it runs, whatever the user wrote: `steps` timed steps and the
// traced ones, without evaluation and without saving.
config::Config perf_config(config::Config config, std::int64_t steps);

struct PerfRequest {
  rules::JudgedConfig config;  // of perf_config(); ranks are threads
  std::int64_t steps = 0;
  WindowOptions window;
  std::filesystem::path run_dir;  // for config, metrics and trace
  const std::atomic<bool>* stop;  // set to end after the current step
  std::function<void(const train::StepRecord& record)> progress;
};

struct PerfRun {
  std::vector<double> step_ms;  // of every step before the traced ones
  std::vector<double> losses;
  std::int64_t not_finite = 0;  // steps that changed nothing
  std::int64_t repeated = 0;    // steps that ran again without their row budget
  bool interrupted = false;     // fewer steps than asked for
  // None where it was interrupted before the window had a step.
  std::optional<Window> window;
  std::optional<Steady> steady_ms;
  double tokens_per_second = 0;  // in the window
  double flops_per_second = 0;   // of the model, by config::flops_per_token, on all ranks
  std::optional<trace::Exposure> exposure;              // of the traced steps
  std::vector<trace::Timeline> timelines;               // of all ranks, of the same
  std::array<std::size_t, tensor::kTags> peak_bytes{};  // of rank 0

  std::size_t total_peak_bytes() const;  // the tags' peaks together
};

PerfRun run_perf(const PerfRequest& request);

}  // namespace weft::measure
