// Cases of the whole engine for every device besides the CPU: each layout, dispatcher, order, and
// way to keep or recompute that uses memory differently.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "tests/train/train_support.h"

namespace weft::train {

struct EngineCase {
  std::string name;
  config::Config config;
  schedule::Detail detail = {};
};
void PrintTo(const EngineCase& at, std::ostream* out);

inline constexpr double kTooSmall = 1.01;  // row budget factor that a step exceeds

std::vector<EngineCase> engine_cases();

// Outcome of kEngineSteps of a case on the CPU, trained once for several tests.
inline constexpr std::int64_t kEngineSteps = 2;
const Outcome& trained_on_cpu(const EngineCase& at);

// Takes a step whose gradients are NaN before it, and expects zero padding after it: the first
// gradient of a step assigns.
StepTotals step_over_stale_gradients(Engine& engine, const StepInput& input);

// Overlaps forward with backward, with delayed weight gradients.
void to_overlap(config::Config& config);

}  // namespace weft::train
