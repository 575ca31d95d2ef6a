// Schedules that separate weight gradients (W) from the backward, to fill the time in which a rank
// would wait. Forwards and input gradients (D), which other ranks wait for, so end sooner.
#pragma once

#include <vector>

#include "weft/schedule/builders/turns.h"

namespace weft::schedule {

// ZB-H1: one forward and one backward alternate, with one chunk per rank. A rank may have at most
// pp micro-batches with open weight gradients, the maximum of rank 0 in 1F1B; at that limit, one W
// follows the next D. Rank r therefore has r open when the forwards end. It completes them while
// the pipeline drains: one after each D, the rest at the end. Rank 0 sends no gradients and has
// none open: its D and W stay together (B), as in 1F1B.
//
//   rank 0  F0 F1 F2 F3 .  .  .  B0    F4 B1    F5 ... B5    B6    B7
//   rank 3  .  .  .  F0 D0 F1 D1 F2 D2 F3 D3 W0 F4 ... F7 D7 W4 W5 W6 W7
//
// With equal stages a rank idles for (pp - 1) (F + D - W), if W <= F, D; in 1F1B for (pp - 1) (F +
// D + W).
std::vector<std::vector<Turn>> zero_bubble_rounds(const PipelineShape& shape);

// DualPipeV: rank r has stages r and 2 pp - 1 - r. A micro-batch passes each rank twice in each
// direction and turns at the last rank. Forwards of either chunk run beside backwards of the other,
// which come from the other side:
//
//   fill     chunk 0 forward until the first micro-batch returns (2 d, d ranks behind this one);
//            both chunks forward until its gradient returns (r + 1); then D W of chunk 1 and its
//            forward
//   middle   [F chunk 0 | B chunk 1] [F chunk 1 | B chunk 0], until chunk 0 has no forward left
//   drain    B chunk 1, [F chunk 1 | B chunk 0]; then backwards alone. The last pp of them delay
//            their weight gradients: d between the last D of chunk 0, r + 1 at the end
//
// The middle begins after 2 pp - r - 1 micro-batches. A step with fewer than 2 pp has the order of
// the last ones of 2 pp: it also drains.
std::vector<std::vector<Turn>> dual_pipe_rounds(const PipelineShape& shape);

// Stage s takes micro-batch i at time 2 i + s: a rank's two chunks never run at once.
std::vector<Turn> dual_pipe_forwards(const PipelineShape& shape);

}  // namespace weft::schedule
