// One rank of the MPI tests, started several times by tools/mpirun.sh:
//
//   comm_mpi_ranks conformance | killed | stuck | told | meet | <a failure scenario>
//
// Prints errors on standard error, like cli/, and exits with 1. Also prints its duration by its own
// clock, which excludes the launcher's time.
#include <chrono>
#include <csignal>
#include <cstdio>
#include <thread>

#include "tests/comm/conformance_support.h"
#include "tests/comm/failure_support.h"
#include "weft/comm/rendezvous/store.h"

namespace weft::comm {
namespace {

void run_conformance_table(Endpoint& endpoint) {
  int held = 0;
  for (const StreamRole role : {StreamRole::Communication, StreamRole::Alone}) {
    for (const ConformanceCase& test : conformance_cases()) {
      if (!suits(test, Peers::Real, role)) continue;
      for (const DeviceKind device : devices::all_devices()) {
        run_conformance(test, endpoint, Peers::Real, role, device);
        ++held;
      }
    }
  }
  std::printf("rank %d: %d cases hold\n", endpoint.rank(), held);
}

// Rank 1 dies silently, or hangs, while the others wait for it.
void lose_rank_1(Endpoint& endpoint, std::string_view how) {
  Bench bench(endpoint, Peers::Real, StreamRole::Communication);
  if (endpoint.rank() == 1 && how == "killed") std::raise(SIGKILL);
  while (endpoint.rank() == 1) std::this_thread::sleep_for(std::chrono::seconds(1));
  poison_on_error(endpoint, [&] {
    bench.all->barrier(*bench.stream);
    bench.stream->synchronize();
  });
}

// Rendezvous of NCCL ranks started by mpirun: MPI gives the address, then it ends.
void meet() {
  Environment environment;
  for (const char* name : rendezvous::variables()) {
    if (const char* value = std::getenv(name)) environment[name] = value;
  }
  // As on several machines: rank 0 is reached by its host name.
  environment.erase("OMPI_COMM_WORLD_LOCAL_SIZE");
  const rendezvous::Place place = rendezvous::place_from(environment, 0, rendezvous::meet_over_mpi);
  rendezvous::Store store(place, "", 20);
  store.put(base::text("from {}", place.rank), "here");
  for (int rank = 0; rank < place.world; ++rank) store.get(base::text("from {}", rank));
  store.gather_ends();
  std::printf("rank %d met %d others\n", place.rank, place.world - 1);
}

void run_named(Endpoint& endpoint, std::string_view name) {
  if (name == "conformance") return run_conformance_table(endpoint);
  if (name == "killed" || name == "stuck") return lose_rank_1(endpoint, name);
  if (name == "told") return run_failure(failure_scenarios().front(), endpoint);
  for (const FailureScenario& scenario : failure_scenarios()) {
    if (scenario.name == name) return run_failure(scenario, endpoint);
  }
  throw base::ConfigError(base::text("no scenario '{}'", name));
}

}  // namespace
}  // namespace weft::comm

int main(int count, char** words) {
  const std::string_view name = count > 1 ? words[1] : "conformance";
  const bool is_patient = name == "conformance" || name == "killed" || name == "told";
  const double timeout = is_patient ? 20 : weft::comm::kFailureTimeout;
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin = Clock::now();
  const auto report = [&](const std::string& error) {
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    std::fprintf(stderr, "%s\nfailed after %.1f s\n", error.c_str(), seconds);
    std::fflush(stderr);
  };
  try {
    if (name == "meet") {
      weft::comm::meet();
      return 0;
    }
    weft::comm::run_mpi({.timeout_seconds = timeout, .report = report},
                        [&](weft::comm::Endpoint& at) {
                          begin = Clock::now();
                          weft::comm::run_named(at, name);
                        });
  } catch (const std::exception& error) {
    if (name == "meet") report(error.what());
    return 1;
  }
  return 0;
}
