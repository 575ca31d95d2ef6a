#include "weft/trace/exposure.h"

#include <algorithm>
#include <limits>
#include <set>

#include "weft/trace/operations.h"
#include "weft/trace/rank_exposure.h"

namespace weft::trace {
namespace {

double milliseconds(std::int64_t ns) { return static_cast<double>(ns) / 1e6; }

// `steps`: how many steps of how many ranks the sums are of.
CommunicationTime time_of(const ExposureSums& sums, std::size_t steps) {
  const auto mean = [&](std::int64_t ns) { return milliseconds(ns) / static_cast<double>(steps); };
  const auto share = [&](std::int64_t ns) {
    return sums.communication == 0
               ? 0.0
               : static_cast<double>(ns) / static_cast<double>(sums.communication);
  };
  return {.communication_ms = mean(sums.communication),
          .hidden_any = share(sums.hidden_any),
          .hidden_gemm = share(sums.hidden_gemm),
          .exposed_ms = mean(sums.exposed),
          .reasons = {.no_partner_ms = mean(sums.no_partner),
                      .short_cover_ms = mean(sums.short_cover),
                      .peer_ms = mean(sums.peer),
                      .host_ms = mean(sums.host)}};
}

CommunicationKinds times_of(const SumsByKind& sums, std::size_t steps) {
  CommunicationKinds kinds;
  for (const auto& [kind, sum] : sums) {
    if (kind != kAllKinds) kinds.emplace(kind, time_of(sum, steps));
  }
  return kinds;
}

std::set<int> runs_of(std::span<const Timeline> timelines) {
  std::set<int> runs;
  for (const Timeline& timeline : timelines) {
    for (const Span& span : timeline.spans) runs.insert(span.run);
  }
  return runs;
}

// From the first span of the run to its last; of the slowest rank where clocks differ.
std::int64_t step_ns(std::span<const Timeline> timelines, int run, Clocks clocks) {
  constexpr std::int64_t kLast = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t kFirst = std::numeric_limits<std::int64_t>::min();
  std::int64_t begin = kLast, end = kFirst, longest = 0;
  for (const Timeline& timeline : timelines) {
    if (clocks == Clocks::Separate) begin = kLast, end = kFirst;
    for (const Span& span : timeline.spans) {
      if (span.run != run) continue;
      begin = std::min(begin, span.begin_ns);
      end = std::max(end, span.end_ns);
    }
    if (begin <= end) longest = std::max(longest, end - begin);
  }
  return longest;
}

}  // namespace

double Exposure::mean_step_ms() const {
  double sum = 0;
  for (const double ms : step_ms) sum += ms;
  return step_ms.empty() ? 0 : sum / static_cast<double>(step_ms.size());
}

Exposure analyse(std::span<const Timeline> timelines, Clocks clocks) {
  const std::set<int> runs = runs_of(timelines);
  const Operations operations(timelines, clocks);
  Exposure exposure;
  for (const int run : runs)
    exposure.step_ms.push_back(milliseconds(step_ns(timelines, run, clocks)));
  SumsByKind all{{std::string(kAllKinds), {}}};
  for (const Timeline& timeline : timelines) {
    SumsByKind own{{std::string(kAllKinds), {}}};
    for (const int run : runs) add(own, rank_exposure(timeline, run, operations));
    const std::size_t steps = std::max<std::size_t>(1, runs.size());
    exposure.ranks.push_back({.rank = timeline.rank,
                              .label = timeline.label,
                              .kinds = times_of(own, steps),
                              .total = time_of(own.at(std::string(kAllKinds)), steps)});
    add(all, own);
  }
  const std::size_t steps = std::max<std::size_t>(1, runs.size() * timelines.size());
  exposure.kinds = times_of(all, steps);
  exposure.total = time_of(all.at(std::string(kAllKinds)), steps);
  return exposure;
}

}  // namespace weft::trace
