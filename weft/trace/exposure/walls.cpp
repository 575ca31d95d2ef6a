#include "weft/trace/exposure/walls.h"

#include <algorithm>
#include <limits>
#include <map>

#include "weft/trace/exposure/rank_exposure.h"
#include "weft/trace/operations.h"

namespace weft::trace {
namespace {

constexpr double Walls::*kParts[] = {&Walls::step,
                                     &Walls::compute,
                                     &Walls::host,
                                     &Walls::communication,
                                     &Walls::bubble,
                                     &Walls::late,
                                     &Walls::copy,
                                     &Walls::idle,
                                     &Walls::gemm,
                                     &Walls::slowed};

double Walls::*wall_of(Cause cause) {
  switch (cause) {
    case Cause::Peer:
      return &Walls::late;
    case Cause::PipelinePeer:
      return &Walls::bubble;
    case Cause::Host:
    case Cause::HostAlone:
      return &Walls::host;
    case Cause::NoPartner:
    case Cause::ShortCover:
      return &Walls::communication;
    case Cause::Slowed:
      return &Walls::slowed;
    case Cause::Nothing:
      return &Walls::idle;
  }
  return &Walls::idle;
}

// Per run, from first to last span of one rank.
using Steps = std::map<int, Interval>;

void widen(Steps& steps, int run, const Interval& time) {
  const auto [found, is_new] = steps.emplace(run, time);
  found->second = {std::min(found->second.begin, time.begin),
                   std::max(found->second.end, time.end)};
}

Steps steps_of(const Timeline& timeline) {
  Steps steps;
  for (const Span& span : timeline.spans) widen(steps, span.run, {span.begin_ns, span.end_ns});
  return steps;
}

Intervals copies_of(const RunSpans& spans) {
  Intervals copies;
  for (const Span* span : spans) {
    if (is_copy_lane(span->lane) && !is_node(*span)) {
      copies.push_back({span->begin_ns, span->end_ns});
    }
  }
  return unite(std::move(copies));
}

std::int64_t shared_length(const Intervals& of, const Intervals& inside) {
  return length(shared(of, inside));
}

void add_repeated(Walls& walls, const Walls& part, std::int64_t times) {
  for (const auto member : kParts) walls.*member += part.*member * static_cast<double>(times);
}

}  // namespace

Walls walls_of(const std::vector<Communication>& all,
               const ComputeLane& compute,
               const Intervals& copies,
               const Interval& step) {
  const auto in_ms = [](std::int64_t ns) { return static_cast<double>(ns) / 1e6; };
  const Intervals whole = unite({step});
  Walls walls{.step = in_ms(length(whole)),
              .compute = in_ms(shared_length(compute.busy(), whole)),
              .gemm = in_ms(shared_length(compute.gemm(), whole))};
  ExposedMoments moments(all, compute);
  Intervals nothing;
  const auto count = [&](Cause cause, const Interval& part) {
    walls.*wall_of(cause) += in_ms(part.end - part.begin);
    if (cause == Cause::Nothing) nothing.push_back(part);
  };
  for (const Interval& stretch : subtract(whole, compute.busy())) moments.judge(stretch, count);
  walls.copy = in_ms(shared_length(unite(std::move(nothing)), copies));
  walls.idle -= walls.copy;
  return walls;
}

Walls mean(std::span<const Walls> some) {
  Walls all;
  for (const Walls& one : some) {
    for (const auto part : kParts) all.*part += one.*part / static_cast<double>(some.size());
  }
  return all;
}

std::vector<RankWalls> walls_of(std::span<const Timeline> timelines,
                                Clocks clocks,
                                const Shortened& shortened) {
  Steps together;
  for (const Timeline& timeline : timelines) {
    for (const auto& [run, time] : steps_of(timeline)) widen(together, run, time);
  }
  const Operations operations(timelines, clocks);
  std::vector<RankWalls> ranks;
  for (const Timeline& timeline : timelines) {
    std::vector<Walls> runs;
    const Steps steps = steps_of(timeline);
    for (const auto& [run, spans] : spans_by_run(timeline)) {
      const Interval own = steps.at(run);
      const Communications communications = communications_of(spans, operations);
      const auto all = communications.find(std::string(kAllKinds));
      const auto during = [&, compute = ComputeLane(spans), copies = copies_of(spans)](
                              const Interval& time) {
        return walls_of(all == communications.end() ? std::vector<Communication>{} : all->second,
                        compute,
                        copies,
                        time);
      };
      Walls& walls = runs.emplace_back(during(clocks == Clocks::Shared ? together.at(run) : own));
      if (shortened.is_short()) add_repeated(walls, during(shortened.steady), shortened.repeated);
    }
    ranks.push_back({.rank = timeline.rank, .label = timeline.label, .walls = mean(runs)});
  }
  return ranks;
}

}  // namespace weft::trace
