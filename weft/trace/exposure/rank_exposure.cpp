#include "weft/trace/exposure/rank_exposure.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "weft/trace/compute_lane.h"
#include "weft/trace/exposure/intervals.h"

namespace weft::trace {
namespace {

std::int64_t ExposureSums::*member_of(Cause cause) {
  switch (cause) {
    case Cause::Peer:
    case Cause::PipelinePeer:
      return &ExposureSums::peer;
    case Cause::Host:
    case Cause::HostAlone:
      return &ExposureSums::host;
    case Cause::ShortCover:
    case Cause::Slowed:
      return &ExposureSums::short_cover;
    case Cause::NoPartner:
    case Cause::Nothing:
      return &ExposureSums::no_partner;
  }
  return &ExposureSums::no_partner;
}

ExposureSums sums_of(const std::vector<Communication>& all,
                     const ComputeLane& compute,
                     const Interval& during) {
  Intervals times;
  for (const Communication& one : all) times.push_back(one.time);
  const Intervals communication = shared(unite(std::move(times)), unite({during}));
  const Intervals exposed = subtract(communication, compute.busy());
  ExposureSums sums{.communication = length(communication), .exposed = length(exposed)};
  sums.hidden_any = sums.communication - sums.exposed;
  sums.hidden_gemm = sums.communication - length(subtract(communication, compute.gemm()));
  ExposedMoments moments(all, compute);
  const auto count = [&](Cause cause, const Interval& part) {
    sums.*member_of(cause) += part.end - part.begin;
  };
  for (const Interval& stretch : exposed) moments.judge(stretch, count);
  return sums;
}

}  // namespace

void add(SumsByKind& into, const SumsByKind& more, std::int64_t times) {
  for (const auto& [kind, sums] : more) {
    ExposureSums& sum = into[kind];
    sum.communication += times * sums.communication;
    sum.hidden_any += times * sums.hidden_any;
    sum.hidden_gemm += times * sums.hidden_gemm;
    sum.exposed += times * sums.exposed;
    sum.no_partner += times * sums.no_partner;
    sum.short_cover += times * sums.short_cover;
    sum.peer += times * sums.peer;
    sum.host += times * sums.host;
  }
}

Communications communications_of(const RunSpans& spans, const Operations& operations) {
  Communications kinds;
  for (const Span* one_span : spans) {
    const Span& span = *one_span;
    const bool is_copy = is_copy_lane(span.lane);
    const std::string_view kind = is_copy ? kCopyLane : communication_kind(span.lane);
    if (!is_node(span) || kind.empty()) continue;
    const Communication one{.time = {span.begin_ns, span.end_ns},
                            .waited_until = operations.waited_until(span),
                            .coverable = span.coverable,
                            .is_pipeline = kind == "pp"};
    kinds[std::string(kind)].push_back(one);
    if (!is_copy) kinds[std::string(kAllKinds)].push_back(one);
  }
  for (auto& [kind, all] : kinds) {
    std::ranges::sort(all, {}, [](const Communication& one) { return one.time.begin; });
  }
  return kinds;
}

SumsByKind rank_exposure(const Communications& communications, const ComputeLane& compute) {
  using Limits = std::numeric_limits<std::int64_t>;
  return rank_exposure(communications, compute, {Limits::min(), Limits::max()});
}

SumsByKind rank_exposure(const Communications& communications,
                         const ComputeLane& compute,
                         const Interval& during) {
  SumsByKind sums;
  for (const auto& [kind, all] : communications) sums.emplace(kind, sums_of(all, compute, during));
  return sums;
}

}  // namespace weft::trace
