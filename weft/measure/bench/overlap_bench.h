// Overlap experiment: one model trains the same steps in several orders (plain, overlapped, more
// overlapped) on several fabrics. All orders alternate in one process, so noise affects all alike.
// Bit-identical orders allow this: the weights evolve the same way. In a pretended world (loopback)
// one rank stands for all.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "weft/grid/fabric.h"
#include "weft/measure/bench/overlap_orders.h"
#include "weft/schedule/plan.h"
#include "weft/trace/exposure/exposure.h"
#include "weft/train/launch.h"

namespace weft::measure {

// Target for communication as a share of compute alone (with one rank: both within layers). Alone:
// communication time by itself. Added: additional time of the plain order over free links.
enum class WireShare { Alone, Added };

// 0: free links, where communication is a copy; nullopt: the real links.
struct FabricTarget {
  std::string name;
  std::optional<double> communication_share;
  WireShare share = WireShare::Alone;
};

struct OverlapBenchRequest {
  std::vector<OverlapOrder> orders;   // from overlap_orders(), the plain order first
  std::vector<FabricTarget> targets;  // a real network has one target, itself
  int rounds = 5;
  std::function<void(int done, int of)> progress;
  const std::atomic<bool>* stop = nullptr;  // ends it between two steps
  train::Process process = {};
};

// Result of one order on one fabric.
struct OverlapRun {
  std::string name;
  std::vector<double> seconds;             // timed steps
  std::vector<trace::Timeline> timelines;  // traced steps on all ranks
  std::int64_t peak_activation_bytes = 0;  // largest over the ranks; activations and communication

  double step_seconds() const;  // median
  double best_seconds() const;  // minimum: free of other programs
};

struct FabricRuns {
  std::string name;
  std::optional<grid::Fabric> fabric;  // as emulated; nullopt: the real links
  std::vector<OverlapRun> runs;
};

struct OverlapBench {
  // Median of the plain order on free links; with one rank, without its communication there.
  // nullopt: a network, which cannot be removed.
  std::optional<double> compute_seconds;
  // Share of the layers: without embedding, head and optimizer.
  std::optional<double> layers_compute_seconds;
  std::vector<FabricRuns> fabrics;
  // Slowdown of compute beside continuous copies in device memory, as a fraction; for one rank
  // alone on a GPU.
  double slower_beside_copies = 0;
  trace::Clocks clocks = trace::Clocks::Shared;  // clocks of the timelines
  bool is_rank_zero = false;                     // true if this process holds the results
  bool interrupted = false;
};

OverlapBench bench_overlap(const OverlapBenchRequest& request);

}  // namespace weft::measure
