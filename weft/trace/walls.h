// Where the time of a step went: every moment of a rank belongs to one wall.
//
//   compute        an operation of the compute lane ran, whatever ran beside it
//   host           compute was ready and had not been issued
//   communication  only messages moved, and compute waited for them
//   bubble         a stage waited for another stage of the pipeline
//   late           an operation waited for ranks that had not begun it: imbalance
//   copy           only copies to or from the host ran
//   slowed         transfers took of the compute beside them: of a simulated step, which knows it
//   idle           nothing ran, and nothing was ready
//
// They add up to the step. The exposed communication of exposure.h is spread over them by its
// reason: no_partner and short_cover are communication, host is host, peer is late or bubble.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "weft/trace/exposed_moments.h"
#include "weft/trace/exposure.h"
#include "weft/trace/shortened.h"

namespace weft::trace {

// Milliseconds of a step: means over the traced runs, and for several ranks over the ranks.
struct Walls {
  double step = 0;
  double compute = 0, host = 0, communication = 0, bubble = 0, late = 0, copy = 0, idle = 0;
  double gemm = 0;    // of compute: matrix products and attention
  double slowed = 0;  // of a simulated step: a wall of its own
};

struct RankWalls {
  int rank = 0;
  std::string label;
  Walls walls;
};

// One rank in one run: `all` that it sent and received by begin, the set of its copies, and the
// time of the step.
Walls walls_of(const std::vector<Communication>& all,
               const ComputeLane& compute,
               const Intervals& copies,
               const Interval& step);

// The mean; of none, nothing.
Walls mean(std::span<const Walls> some);

// Of the whole step, where the timelines show fewer micro-batches.
std::vector<RankWalls> walls_of(std::span<const Timeline> timelines,
                                Clocks clocks,
                                const Shortened& shortened = {});

}  // namespace weft::trace
