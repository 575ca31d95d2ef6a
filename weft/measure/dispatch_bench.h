// The dispatchers side by side: the same tokens, routed at random to experts that hand back what
// they get, through every dispatcher, without links and over emulated ones. Verified first: what
// comes back must be each token as often as it chose an expert.
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
  // Of the model: experts, topk, hidden size, dtype, ep (all ranks). Of runtime: ranks_per_node,
  // threads. fabric: free ones are chosen here, so that the wire takes ten times the copies.
  const rules::JudgedConfig& config;
  std::int64_t tokens = 0;  // of each rank
  int rounds = 5;           // timed trips of each dispatcher on each fabric
  std::function<void(int done, int of)> progress;
  const std::atomic<bool>* stop = nullptr;  // ends it between two trips
};

// Times are medians of dispatch + combine of a forward trip, which is communication alone, unless
// said otherwise; the slowest rank counts.
struct DispatcherRun {
  std::string name;
  derive::DispatchTraffic counted, predicted;  // of a rank, on average
  double free_seconds = 0;                     // without links: the copies
  double local_seconds = 0;                    // permute, arrange, restore, merge; without links
  double fabric_seconds = 0;
  std::optional<double> one_machine_seconds;  // with all ranks in one machine; not hybridep
  std::int64_t peak_bytes = 0;                // largest of the ranks, activations and communication
  double share_of_link = 0;                   // bytes over the slowest link / time / its rate
};

struct DispatchBench {
  grid::Fabric fabric, one_machine;
  std::vector<DispatcherRun> runs;
  bool interrupted = false;
};

// The dispatchers that are measured, in order: alltoall, allgather, deepep, hybridep. Each is
// judged as a run of its own; ConfigError where the rules refuse one.
struct NamedDispatcher {
  std::string name;
  rules::JudgedConfig config;
};
std::vector<NamedDispatcher> dispatchers_of(const config::Config& config);

// k different experts for each of a rank's tokens, ascending, every expert as likely; (T, k).
std::vector<std::int32_t> uniform_choices(std::int64_t first_token,
                                          std::int64_t tokens,
                                          std::int64_t k,
                                          std::int64_t experts);

DispatchBench bench_dispatch(const DispatchBenchRequest& request);

}  // namespace weft::measure
