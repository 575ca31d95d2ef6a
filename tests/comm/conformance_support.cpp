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

bool suits(const ConformanceCase& test, Peers peers, StreamMode mode) {
  switch (test.suits) {
    case Suits::Every:
      return true;
    case Suits::Threaded:
      return mode == StreamMode::Threaded;
    case Suits::RealThreaded:
      return mode == StreamMode::Threaded && peers == Peers::Real;
  }
  return false;
}

void run_conformance(const ConformanceCase& test,
                     Endpoint& endpoint,
                     Peers peers,
                     StreamMode mode) {
  Bench bench(endpoint, peers, mode);
  poison_on_error(endpoint, [&] { test.run(bench); });
}

}  // namespace weft::comm
