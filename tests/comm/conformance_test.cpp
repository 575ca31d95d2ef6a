#include <gtest/gtest.h>

#include "tests/comm/conformance_support.h"

namespace weft::comm {
namespace {

enum class Backend { Threads, Fake };

struct Arrangement {
  Backend backend;
  int world;
  StreamMode mode;
  const ConformanceCase* test;
};

std::vector<Arrangement> arrangements() {
  std::vector<Arrangement> all;
  for (const auto& test : conformance_cases()) {
    for (const Backend backend : {Backend::Threads, Backend::Fake}) {
      const Peers peers = backend == Backend::Fake ? Peers::Pretended : Peers::Real;
      for (const int world : {1, 2, 3, 4}) {
        for (const StreamMode mode : {StreamMode::Threaded, StreamMode::Inline}) {
          if (suits(test, peers, mode)) all.push_back({backend, world, mode, &test});
        }
      }
    }
  }
  return all;
}

std::string name_of_arrangement(const testing::TestParamInfo<Arrangement>& info) {
  const Arrangement& at = info.param;
  return base::text("{}_{}_{}Ranks_{}",
                    at.test->name,
                    at.backend == Backend::Threads ? "Threads" : "Fake",
                    at.world,
                    at.mode == StreamMode::Threaded ? "Threaded" : "Inline");
}

class Conformance : public testing::TestWithParam<Arrangement> {};

TEST_P(Conformance, Holds) {
  const Arrangement& at = GetParam();
  if (at.backend == Backend::Threads) {
    run_threads({.world = at.world, .timeout_seconds = 20}, [&](Endpoint& endpoint) {
      run_conformance(*at.test, endpoint, Peers::Real, at.mode);
    });
    return;
  }
  for (int rank = 0; rank < at.world; ++rank) {
    run_fake({.world = at.world, .rank = rank}, [&](Endpoint& endpoint) {
      run_conformance(*at.test, endpoint, Peers::Pretended, at.mode);
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Comm, Conformance, testing::ValuesIn(arrangements()), name_of_arrangement);

}  // namespace
}  // namespace weft::comm
