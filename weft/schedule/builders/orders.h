// Orders in which weight gradients (W) are apart from the backward and fill the time in which a
// rank would wait. What others wait for, forwards and input gradients (D), is sooner done.
#pragma once

#include <vector>

#include "weft/schedule/builders/turns.h"

namespace weft::schedule {

// ZB-H1: one forward and one backward in turn, of one chunk a rank. A rank has at most pp
// micro-batches whose weight gradients are not done, as many as rank 0 has in 1F1B: where it has
// so many, one W follows the next D. So rank r is r of them behind when the forwards end, which it
// makes up for while the pipeline drains: one behind each D, the others at the end. Rank 0 sends no
// gradients and is never behind: its D and W stay one (B), as in 1F1B.
//
//   rank 0  F0 F1 F2 F3 .  .  .  B0    F4 B1    F5 ... B5    B6    B7
//   rank 3  .  .  .  F0 D0 F1 D1 F2 D2 F3 D3 W0 F4 ... F7 D7 W4 W5 W6 W7
//
// With equal stages a rank is idle for (pp - 1) (F + D - W), where W <= F, D; in 1F1B it is for
// (pp - 1) (F + D + W).
std::vector<std::vector<Turn>> zero_bubble_rounds(const PipelineShape& shape);

// DualPipeV: rank r has stages r and 2 pp - 1 - r, so that a micro-batch comes by twice each way
// and the last rank turns it round. Forwards of either chunk run beside backwards of the other,
// which come from the other side:
//
//   fill     chunk 0 forward until the first micro-batch is back (2 d, d ranks behind this one);
//            both chunks forward until its gradient is (r + 1); then D W of chunk 1 and its forward
//   middle   [F chunk 0 | B chunk 1] [F chunk 1 | B chunk 0], until no forward of chunk 0 is left
//   drain    B chunk 1, [F chunk 1 | B chunk 0]; then backwards alone, the weight gradients of the
//            last pp of them put off: d between the last D of chunk 0, r + 1 at the end
//
// So many micro-batches are in flight that the middle begins after 2 pp - r - 1 of them. A step of
// fewer than 2 pp has the order of the last ones of 2 pp: it drains as well.
std::vector<std::vector<Turn>> dual_pipe_rounds(const PipelineShape& shape);

// Stage s takes micro-batch i at time 2 i + s: the two chunks of a rank never at once.
std::vector<Turn> dual_pipe_forwards(const PipelineShape& shape);

}  // namespace weft::schedule
