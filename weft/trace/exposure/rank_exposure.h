// Exposure of one rank in one run, in nanoseconds.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "weft/trace/exposure/exposed_moments.h"
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

// By kind of communication. kAllKinds holds the union of all kinds, not their sum, because kinds
// may overlap in time.
using SumsByKind = std::map<std::string, ExposureSums>;
inline constexpr std::string_view kAllKinds = "";

// Adds `more`, `times` times.
void add(SumsByKind& into, const SumsByKind& more, std::int64_t times = 1);

// Communication of a rank in a run, sorted by begin: by kind, and all of it under kAllKinds.
using Communications = std::map<std::string, std::vector<Communication>>;
Communications communications_of(const RunSpans& spans, const Operations& operations);

SumsByKind rank_exposure(const Communications& communications, const ComputeLane& compute);
// Exposure within a part of the run's time.
SumsByKind rank_exposure(const Communications& communications,
                         const ComputeLane& compute,
                         const Interval& during);

// Sums of a rank over all runs.
struct RankSums {
  int rank = 0;
  std::string label;
  SumsByKind sums;
};
// Mean over `runs` runs, which took `step_ms`.
Exposure mean_exposure(const std::vector<RankSums>& ranks,
                       std::size_t runs,
                       std::vector<double> step_ms);

}  // namespace weft::trace
