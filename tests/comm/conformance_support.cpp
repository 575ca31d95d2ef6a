#include "tests/comm/conformance_support.h"

namespace weft::comm {

const std::vector<ConformanceCase>& conformance_cases() {
  static const std::vector<ConformanceCase> all = [] {
    std::vector<ConformanceCase> cases;
    for (const auto& part : {exchange_cases(), reduction_cases(), concurrency_cases()})
      cases.insert(cases.end(), part.begin(), part.end());
    return cases;
  }();
  return all;
}

bool suits(const ConformanceCase& test, Peers peers, StreamRole role) {
  switch (test.suits) {
    case Suits::Every:
      return true;
    case Suits::Threaded:
      return role == StreamRole::Communication;
    case Suits::RealThreaded:
      return role == StreamRole::Communication && peers == Peers::Real;
  }
  return false;
}

void run_conformance(const ConformanceCase& test,
                     Endpoint& endpoint,
                     Peers peers,
                     StreamRole role,
                     DeviceKind device) {
  Bench bench(endpoint, peers, role, device);
  poison_on_error(endpoint, [&] { test.run(bench); });
}

}  // namespace weft::comm
