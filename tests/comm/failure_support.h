// Failures between ranks, and the expected errors. Three ranks, a timeout of kFailureTimeout; a
// scenario throws on at least one rank.
#pragma once

#include <string>
#include <vector>

#include "tests/comm/bench_support.h"

namespace weft::comm {

inline constexpr double kFailureTimeout = 0.4;

struct FailureScenario {
  std::string name;
  void (*run)(Bench&) = nullptr;
  std::vector<std::string> says;  // the error contains all of these
};

const std::vector<FailureScenario>& failure_scenarios();
void run_failure(const FailureScenario& scenario, Endpoint& endpoint);

}  // namespace weft::comm
