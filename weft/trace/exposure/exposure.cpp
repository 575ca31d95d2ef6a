#include "weft/trace/exposure/exposure.h"

#include <algorithm>
#include <map>

#include "weft/trace/exposure/rank_exposure.h"
#include "weft/trace/operations.h"

namespace weft::trace {
namespace {

double milliseconds(std::int64_t ns) { return static_cast<double>(ns) / 1e6; }

// `steps`: number of steps, over all ranks, in the sums.
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

// Time of each run from first to last span; with separate clocks, of the slowest rank.
std::map<int, std::int64_t> steps_ns(std::span<const Timeline> timelines, Clocks clocks) {
  std::map<int, Interval> times;
  std::map<int, std::int64_t> longest;
  const auto take_longest = [&] {
    for (const auto& [run, time] : times) {
      std::int64_t& most = longest[run];
      most = std::max(most, time.end - time.begin);
    }
    times.clear();
  };
  for (const Timeline& timeline : timelines) {
    for (const Span& span : timeline.spans) {
      const Interval own{span.begin_ns, span.end_ns};
      Interval& all = times.try_emplace(span.run, own).first->second;
      all = {std::min(all.begin, own.begin), std::max(all.end, own.end)};
    }
    if (clocks == Clocks::Separate) take_longest();
  }
  take_longest();
  return longest;
}

}  // namespace

double Exposure::mean_step_ms() const {
  double sum = 0;
  for (const double ms : step_ms) sum += ms;
  return step_ms.empty() ? 0 : sum / static_cast<double>(step_ms.size());
}

Exposure mean_exposure(const std::vector<RankSums>& ranks,
                       std::size_t runs,
                       std::vector<double> step_ms) {
  const std::string all_kinds(kAllKinds);
  Exposure exposure{.step_ms = std::move(step_ms), .ranks = {}, .kinds = {}, .total = {}};
  SumsByKind all{{all_kinds, {}}};
  const std::size_t steps = std::max<std::size_t>(1, runs);
  for (const RankSums& rank : ranks) {
    SumsByKind own{{all_kinds, {}}};
    add(own, rank.sums);
    exposure.ranks.push_back({.rank = rank.rank,
                              .label = rank.label,
                              .kinds = times_of(own, steps),
                              .total = time_of(own.at(all_kinds), steps)});
    add(all, own);
  }
  const std::size_t all_steps = std::max<std::size_t>(1, runs * ranks.size());
  exposure.kinds = times_of(all, all_steps);
  exposure.total = time_of(all.at(all_kinds), all_steps);
  return exposure;
}

Exposure analyse(std::span<const Timeline> timelines, Clocks clocks, const Shortened& shortened) {
  const Operations operations(timelines, clocks);
  std::vector<double> step_ms;
  for (const auto& [run, ns] : steps_ns(timelines, clocks)) {
    step_ms.push_back(milliseconds(ns + shortened.hidden_ns()));
  }
  const std::size_t runs = step_ms.size();
  std::vector<RankSums> ranks;
  for (const Timeline& timeline : timelines) {
    RankSums& rank =
        ranks.emplace_back(RankSums{.rank = timeline.rank, .label = timeline.label, .sums = {}});
    for (const auto& [run, spans] : spans_by_run(timeline)) {
      const Communications communications = communications_of(spans, operations);
      const ComputeLane compute(spans);
      add(rank.sums, rank_exposure(communications, compute));
      if (!shortened.is_short()) continue;
      add(rank.sums, rank_exposure(communications, compute, shortened.steady), shortened.repeated);
    }
  }
  return mean_exposure(ranks, runs, std::move(step_ms));
}

}  // namespace weft::trace
