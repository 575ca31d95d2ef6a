// Breakdown of a step's time: every moment of a rank belongs to one wall.
//
//   compute        an operation of the compute lane ran, whatever ran beside it
//   host           compute was ready and had not been issued
//   communication  only messages moved, and compute waited for them
//   bubble         a stage waited for another stage of the pipeline
//   late           an operation waited for ranks that had not begun it: imbalance
//   copy           only copies to or from the host ran
//   slowed         transfers slowed the compute beside them (simulated steps only)
//   idle           nothing ran, and nothing was ready
//
// The walls add up to the step. Exposed communication of exposure.h is divided among them by its
// reason: no_partner and short_cover are communication, host is host, peer is late or bubble.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "weft/trace/exposure/exposed_moments.h"
#include "weft/trace/exposure/exposure.h"
#include "weft/trace/exposure/shortened.h"

namespace weft::trace {

// Milliseconds per step: means over the traced runs, and over the ranks if there are several.
struct Walls {
  double step = 0;
  double compute = 0, host = 0, communication = 0, bubble = 0, late = 0, copy = 0, idle = 0;
  double gemm = 0;    // part of compute: GEMMs and attention
  double slowed = 0;  // simulated steps only
};

struct RankWalls {
  int rank = 0;
  std::string label;
  Walls walls;
};

// Walls of one rank in one run. `all`: its communication by begin; `copies`: the set of its copies;
// `step`: the time of the step.
Walls walls_of(const std::vector<Communication>& all,
               const ComputeLane& compute,
               const Intervals& copies,
               const Interval& step);

// Mean; all 0 if `some` is empty.
Walls mean(std::span<const Walls> some);

// Walls of the whole step, also if the timelines leave out micro-batches.
std::vector<RankWalls> walls_of(std::span<const Timeline> timelines,
                                Clocks clocks,
                                const Shortened& shortened = {});

}  // namespace weft::trace
