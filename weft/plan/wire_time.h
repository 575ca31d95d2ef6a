// How long ranks take to exchange something, alone on their links.
#pragma once

#include <cmath>

#include "weft/config/config.h"
#include "weft/plan/hardware.h"
#include "weft/plan/workload.h"

namespace weft::plan {

// A group of ranks and how many of them are in one NVLink domain.
struct RankGroup {
  double ranks = 1;
  double in_domain = 1;

  double domains() const { return std::round(ranks / in_domain); }
};

// Neighbours in the group are `stride` ranks apart.
RankGroup group_of(double ranks, double stride, const Hardware& hardware);

// What one rank sends in a dispatch, a token: rows to other ranks of its domain, and to other
// domains, where every expert is as likely.
struct DispatchRows {
  double inside = 0, between = 0;
};
DispatchRows dispatch_rows(const config::ModelConfig& model, const RankGroup& group);

// A dispatch, or a combine: as many rows travel back.
double dispatch_seconds(const config::ModelConfig& model,
                        const Workload& work,
                        const Hardware& hardware);

// Every rank gets `bytes` in equal parts from all: an all-gather, or a reduce-scatter of as many.
double gather_seconds(double bytes, const RankGroup& group, const Hardware& hardware);

// From one pipeline stage to the next, `ranks_of_stage` ranks away.
double send_seconds(double bytes, double ranks_of_stage, const Hardware& hardware);

}  // namespace weft::plan
