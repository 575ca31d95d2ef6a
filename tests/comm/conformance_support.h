// Table of cases for every backend. A case runs on every rank of a world and throws if the backend
// is wrong; ranks may be threads or processes.
#pragma once

#include <string>
#include <vector>

#include "tests/comm/bench_support.h"

namespace weft::comm {

enum class Suits { Every, Threaded, RealThreaded };

struct ConformanceCase {
  std::string name;
  // Threaded: needs streams with their own threads; Real: needs existing peers
  Suits suits = Suits::Every;
  void (*run)(Bench&) = nullptr;
};

const std::vector<ConformanceCase>& conformance_cases();
bool suits(const ConformanceCase& test, Peers peers, StreamRole role);
void run_conformance(const ConformanceCase& test,
                     Endpoint& endpoint,
                     Peers peers,
                     StreamRole role,
                     DeviceKind device);

// Parts of the table.
std::vector<ConformanceCase> exchange_cases();
std::vector<ConformanceCase> reduction_cases();
std::vector<ConformanceCase> concurrency_cases();

}  // namespace weft::comm
