// What the whole engine is tried with on every device beside the CPU: every layout, dispatcher,
// order and way to keep or recompute that differs in what it does with memory.
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

inline constexpr double kTooSmall = 1.01;  // a factor of the row budget that a step exceeds

std::vector<EngineCase> engine_cases();

// So many steps of a case on the CPU: what several tests hold another run against, trained once.
inline constexpr std::int64_t kEngineSteps = 2;
const Outcome& trained_on_cpu(const EngineCase& at);

// Forward beside backward, weight gradients delayed.
void to_overlap(config::Config& config);

}  // namespace weft::train
