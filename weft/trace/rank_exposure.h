// Exposure of one rank in one run, in nanoseconds.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "weft/trace/exposed_moments.h"
#include "weft/trace/operations.h"
#include "weft/trace/run_spans.h"
#include "weft/trace/span.h"

namespace weft::trace {

struct ExposureSums {
  std::int64_t communication = 0;
  std::int64_t hidden_any = 0;
  std::int64_t hidden_gemm = 0;
  std::int64_t exposed = 0;
  std::int64_t no_partner = 0;
  std::int64_t short_cover = 0;
  std::int64_t peer = 0;
  std::int64_t host = 0;
};

// By kind of communication, and for all of them together under kAllKinds (not the sum of the kinds:
// they may run beside each other).
using SumsByKind = std::map<std::string, ExposureSums>;
inline constexpr std::string_view kAllKinds = "";

// So many times.
void add(SumsByKind& into, const SumsByKind& more, std::int64_t times = 1);

// What a rank sent and received in a run, by begin: by kind, and all of it under kAllKinds.
using Communications = std::map<std::string, std::vector<Communication>>;
Communications communications_of(const RunSpans& spans, const Operations& operations);

SumsByKind rank_exposure(const Communications& communications, const ComputeLane& compute);
// Of a part of the run's time.
SumsByKind rank_exposure(const Communications& communications,
                         const ComputeLane& compute,
                         const Interval& during);

// Of a rank over all runs.
struct RankSums {
  int rank = 0;
  std::string label;
  SumsByKind sums;
};
// What they are in the mean of `runs` runs, which took `step_ms`.
Exposure mean_exposure(const std::vector<RankSums>& ranks,
                       std::size_t runs,
                       std::vector<double> step_ms);

}  // namespace weft::trace
