// The overlap experiment: one model, the same steps in several orders (plain; overlapped; more so),
// on several fabrics, all in one process and in turn, so that noise falls on all alike. Equal bits
// allow it: whichever order runs, the weights go the same way. One rank of a pretended world
// (loopback) stands for all of them.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "weft/grid/fabric.h"
#include "weft/measure/overlap_orders.h"
#include "weft/schedule/plan.h"
#include "weft/trace/exposure.h"
#include "weft/train/launch.h"

namespace weft::measure {

// What communication should take, as a share of compute alone (of one rank alone, both those of the
// layers): by itself, or what the plain order takes longer than on free links.
enum class WireShare { Alone, Added };

// 0: free links, where communication is a copy; none: links as they are.
struct FabricTarget {
  std::string name;
  std::optional<double> communication_share;
  WireShare share = WireShare::Alone;
};

struct OverlapBenchRequest {
  std::vector<OverlapOrder> orders;   // of overlap_orders(), the plain one first
  std::vector<FabricTarget> targets;  // on a real network there is one, as it is
  int rounds = 5;
  std::function<void(int done, int of)> progress;
  const std::atomic<bool>* stop = nullptr;  // ends it between two steps
  train::Process process = {};
};

// One order on one fabric.
struct OverlapRun {
  std::string name;
  std::vector<double> seconds;             // of each timed step
  std::vector<trace::Timeline> timelines;  // of the traced steps, all ranks
  std::int64_t peak_activation_bytes = 0;  // largest of the ranks, activations and communication

  double step_seconds() const;  // median
  double best_seconds() const;  // the least: what no other program disturbed
};

struct FabricRuns {
  std::string name;
  std::optional<grid::Fabric> fabric;  // as emulated; none: as it is
  std::vector<OverlapRun> runs;
};

struct OverlapBench {
  // The plain order on free links; median. Of one rank alone less what its communication took
  // there. None on a network, which cannot be taken away.
  std::optional<double> compute_seconds;
  // What of it the layers took: without embedding, head and optimizer.
  std::optional<double> layers_compute_seconds;
  std::vector<FabricRuns> fabrics;
  // Of one rank alone on a GPU: how much longer, as a part of itself, compute takes beside copies
  // in the device's memory that never end.
  double slower_beside_copies = 0;
  trace::Clocks clocks = trace::Clocks::Shared;  // of the timelines
  bool is_rank_zero = false;                     // this process holds the results
  bool interrupted = false;
};

OverlapBench bench_overlap(const OverlapBenchRequest& request);

}  // namespace weft::measure
