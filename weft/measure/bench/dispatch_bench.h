// Comparison of the dispatchers. The same tokens go through every dispatcher to random experts,
// which return their input, without links and over emulated links. The bench first verifies that
// each token returns once per chosen expert.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "weft/config/config.h"
#include "weft/derive/dispatch_traffic.h"
#include "weft/grid/fabric.h"
#include "weft/rules/judged_config.h"
#include "weft/train/launch.h"

namespace weft::measure {

struct DispatchBenchRequest {
  // Used keys of model: experts, topk, hidden size, dtype, ep (all ranks). Of runtime:
  // ranks_per_node, threads. A free fabric is replaced by links on which the wire takes ten times
  // the copies.
  const rules::JudgedConfig& config;
  std::int64_t tokens = 0;  // per rank
  int rounds = 5;           // timed trips of each dispatcher on each fabric
  std::function<void(int done, int of)> progress;
  const std::atomic<bool>* stop = nullptr;  // looked at between two trips
};

// Medians of dispatch + combine of a forward trip, communication only unless noted; the slowest
// rank counts.
struct DispatcherRun {
  std::string name;
  derive::DispatchTraffic counted, predicted;  // mean over the ranks
  double free_seconds = 0;                     // without links: the copies
  double local_seconds = 0;                    // permute, arrange, restore, merge; without links
  double fabric_seconds = 0;
  std::optional<double> one_machine_seconds;  // with all ranks in one machine; nullopt: hybridep
  std::int64_t peak_bytes = 0;  // largest over the ranks; activations and communication
  double share_of_link = 0;     // bytes over the slowest link, divided by time and link rate
};

struct DispatchBench {
  grid::Fabric fabric, one_machine;
  std::vector<DispatcherRun> runs;
};

// Measured dispatchers in order: alltoall, allgather, deepep, hybridep. Each is judged as a run of
// its own; ConfigError if the rules refuse one.
struct NamedDispatcher {
  std::string name;
  rules::JudgedConfig config;
};
std::vector<NamedDispatcher> dispatchers_of(const config::Config& config);

// k different experts per token of a rank, ascending and uniformly distributed; (T, k).
std::vector<std::int32_t> uniform_choices(std::int64_t first_token,
                                          std::int64_t tokens,
                                          std::int64_t k,
                                          std::int64_t experts);

// Throws Stopped when told to stop.
DispatchBench bench_dispatch(const DispatchBenchRequest& request);

}  // namespace weft::measure
