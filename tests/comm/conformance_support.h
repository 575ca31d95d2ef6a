// The one table of what every backend must do. A case runs on every rank of a world and throws
// where the backend is wrong, so that ranks may be threads or processes.
#pragma once

#include <string>
#include <vector>

#include "tests/comm/bench_support.h"

namespace weft::comm {

enum class Suits { Every, Threaded, RealThreaded };

struct ConformanceCase {
  std::string name;
  Suits suits = Suits::Every;  // needs streams of their own thread, or peers that exist
  void (*run)(Bench&) = nullptr;
};

const std::vector<ConformanceCase>& conformance_cases();
bool suits(const ConformanceCase& test, Peers peers, StreamRole role);
void run_conformance(const ConformanceCase& test,
                     Endpoint& endpoint,
                     Peers peers,
                     StreamRole role,
                     DeviceKind device);

// The parts of the table.
std::vector<ConformanceCase> exchange_cases();
std::vector<ConformanceCase> reduction_cases();
std::vector<ConformanceCase> concurrency_cases();

}  // namespace weft::comm
