// Duration of exchanges between ranks, alone on their links.
#pragma once

#include <cmath>

#include "weft/config/config.h"
#include "weft/plan/cost/workload.h"
#include "weft/plan/hardware/hardware.h"

namespace weft::plan {

// Group of ranks with its number of ranks per NVLink domain.
struct RankGroup {
  double ranks = 1;
  double in_domain = 1;

  double domains() const { return std::round(ranks / in_domain); }
};

// Group whose neighbours are `stride` ranks apart.
RankGroup group_of(double ranks, double stride, const Hardware& hardware);

// Rows per token that one rank sends in a dispatch, inside its domain and to other domains; experts
// are equally likely.
struct DispatchRows {
  double inside = 0, between = 0;
};
DispatchRows dispatch_rows(const config::ModelConfig& model, const RankGroup& group);

// One dispatch or combine: both move the same rows.
double dispatch_seconds(const config::ModelConfig& model,
                        const Workload& work,
                        const Hardware& hardware);

// All-gather in which every rank receives `bytes` in equal parts, or the inverse reduce-scatter.
double gather_seconds(double bytes, const RankGroup& group, const Hardware& hardware);

// Send from one pipeline stage to the next, `ranks_of_stage` ranks away.
double send_seconds(double bytes, double ranks_of_stage, const Hardware& hardware);

}  // namespace weft::plan
