// One step against the machine's ceiling: 2048 x 2048 matrix products on the same threads in the
// same run.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <vector>

#include "weft/rules/judged_config.h"
#include "weft/tensor/pool.h"

namespace weft::measure {

struct StepBench {
  double step_seconds = 0;  // median
  double tokens_per_second = 0;
  double flops_per_second = 0;  // FLOP/s of the model, by derive::flops_per_token
  double sgemm_peak = 0;        // FLOP/s of a 2048^3 product on the same threads, median
  double share_of_peak() const { return flops_per_second / sgemm_peak; }
  std::vector<double> losses;  // steps in order
  std::array<std::size_t, tensor::kTags> peak_bytes{};
};

struct StepBenchRequest {
  rules::JudgedConfig config;  // one rank
  int steps = 6;               // timed steps, after two warm-up steps
  // Called halfway with nothing else running: times a peer under the same conditions.
  std::function<void()> between;
  // Folder for the initial weights and the batches, for a peer; empty: none. It gets a Hugging Face
  // model and tokens.i32, (steps, batch, sequence + 1) int32.
  std::filesystem::path leave_in;
  std::function<void(int done, int of)> progress;
  const std::atomic<bool>* stop = nullptr;
};

// Throws Stopped when told to stop.
StepBench bench_step(const StepBenchRequest& request);

}  // namespace weft::measure
