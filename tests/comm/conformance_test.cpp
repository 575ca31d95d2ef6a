#include <gtest/gtest.h>

#include "tests/comm/conformance_support.h"
#include "tests/soak.h"

namespace weft::comm {
namespace conformance_test {

// SlowFabric and Jitter: threads over emulated links. LoopbackFabric: a single rank.
enum class Backend { Threads, SlowFabric, Jitter, Fake, Loopback, LoopbackFabric };

std::string name_of_backend(Backend backend) {
  switch (backend) {
    case Backend::Threads:
      return "Threads";
    case Backend::SlowFabric:
      return "SlowFabric";
    case Backend::Jitter:
      return "Jitter";
    case Backend::Fake:
      return "Fake";
    case Backend::Loopback:
      return "Loopback";
    case Backend::LoopbackFabric:
      return "LoopbackFabric";
  }
  UNREACHABLE("a backend");
}

std::optional<grid::Fabric> fabric_of(Backend backend) {
  if (backend == Backend::SlowFabric || backend == Backend::LoopbackFabric) {
    return grid::Fabric{.ranks_per_node = 2,
                        .intra = {.bytes_per_second = 1e9, .latency_seconds = 50e-6},
                        .inter = {.bytes_per_second = 0.3e9, .latency_seconds = 400e-6}};
  }
  if (backend == Backend::Jitter) return grid::Fabric{.jitter_seconds = 1e-3, .seed = 3};
  return std::nullopt;
}

Peers peers_of(Backend backend) {
  if (backend == Backend::Fake) return Peers::Pretended;
  const bool returns = backend == Backend::Loopback || backend == Backend::LoopbackFabric;
  return returns ? Peers::Returning : Peers::Real;
}

struct Arrangement {
  Backend backend;
  int world;
  StreamRole role;
  DeviceKind device;
  const ConformanceCase* test;
};

// Emulated links change only the time of arrival: one device suffices.
std::vector<DeviceKind> devices_for(Backend backend) {
  const bool emulated = backend == Backend::SlowFabric || backend == Backend::Jitter;
  if (emulated) return {DeviceKind::Cpu};
  return devices::all_devices();
}

std::vector<Arrangement> arrangements() {
  std::vector<Arrangement> all;
  for (const auto& test : conformance_cases()) {
    for (const Backend backend : {Backend::Threads,
                                  Backend::SlowFabric,
                                  Backend::Jitter,
                                  Backend::Fake,
                                  Backend::Loopback,
                                  Backend::LoopbackFabric}) {
      const Peers peers = peers_of(backend);
      for (const int world : {1, 2, 3, 4}) {
        for (const StreamRole role : {StreamRole::Communication, StreamRole::Alone}) {
          if (!suits(test, peers, role)) continue;
          for (const DeviceKind device : devices_for(backend)) {
            all.push_back({backend, world, role, device, &test});
          }
        }
      }
    }
  }
  return all;
}

std::string name_of_arrangement(const testing::TestParamInfo<Arrangement>& info) {
  const Arrangement& at = info.param;
  return base::text("{}_{}_{}Ranks_{}_{}",
                    at.test->name,
                    name_of_backend(at.backend),
                    at.world,
                    at.role == StreamRole::Communication ? "Threaded" : "Alone",
                    devices::name_of(at.device));
}

class Conformance : public testing::TestWithParam<Arrangement> {};

TEST_P(Conformance, Holds) {
  const Arrangement& at = GetParam();
  const Peers peers = peers_of(at.backend);
  if (peers == Peers::Real) {
    run_threads({.world = at.world, .timeout_seconds = 20, .fabric = fabric_of(at.backend)},
                [&](Endpoint& endpoint) {
                  run_conformance(*at.test, endpoint, peers, at.role, at.device);
                });
    return;
  }
  const auto run_alone = at.backend == Backend::Fake ? run_fake : run_loopback;
  for (int rank = 0; rank < at.world; ++rank) {
    run_alone({.world = at.world, .rank = rank, .fabric = fabric_of(at.backend)},
              [&](Endpoint& endpoint) {
                run_conformance(*at.test, endpoint, peers, at.role, at.device);
              });
  }
}

INSTANTIATE_TEST_SUITE_P(Comm,
                         Conformance,
                         testing::ValuesIn(third_or_all(arrangements())),
                         name_of_arrangement);

}  // namespace conformance_test
}  // namespace weft::comm
