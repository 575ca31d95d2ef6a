#include "weft/trace/rank_exposure.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "weft/trace/compute_lane.h"
#include "weft/trace/intervals.h"

namespace weft::trace {
namespace {

// A node of a communication lane.
struct Communication {
  Interval time;
  std::int64_t waited_until = 0;  // for its peers
  bool coverable = false;
};

using ByKind = std::map<std::string, std::vector<Communication>>;

ByKind communications_of(const Timeline& timeline, int run, const Operations& operations) {
  ByKind kinds;
  for (const Span& span : timeline.spans) {
    const bool is_copy = span.lane == kCopyLane;
    const std::string_view kind = is_copy ? kCopyLane : communication_kind(span.lane);
    if (span.run != run || !is_node(span) || kind.empty()) continue;
    const Communication one{.time = {span.begin_ns, span.end_ns},
                            .waited_until = operations.waited_until(span),
                            .coverable = span.coverable};
    kinds[std::string(kind)].push_back(one);
    if (!is_copy) kinds[std::string(kAllKinds)].push_back(one);
  }
  for (auto& [kind, all] : kinds) {
    std::ranges::sort(all, {}, [](const Communication& one) { return one.time.begin; });
  }
  return kinds;
}

// Gives every exposed moment its reason. Moments come in ascending order.
class Judge {
 public:
  Judge(const std::vector<Communication>& all, const ComputeLane& compute)
      : all_(all), compute_(compute) {
    for (const Communication& one : all) {
      marks_.insert(marks_.end(), {one.time.begin, one.time.end, one.waited_until});
    }
    const std::vector<std::int64_t> changes = compute.changes();
    marks_.insert(marks_.end(), changes.begin(), changes.end());
    std::ranges::sort(marks_);
  }

  // Between two marks a reason holds throughout.
  void judge(const Interval& stretch, ExposureSums& sums) {
    auto mark = std::ranges::upper_bound(marks_, stretch.begin);
    for (std::int64_t begin = stretch.begin; begin < stretch.end;) {
      while (mark != marks_.end() && *mark <= begin) ++mark;
      const std::int64_t end = mark == marks_.end() ? stretch.end : std::min(*mark, stretch.end);
      sums.*reason_at(begin) += end - begin;
      begin = end;
    }
  }

 private:
  std::int64_t ExposureSums::*reason_at(std::int64_t moment) {
    advance(moment);
    bool all_wait = true, any_coverable = false;
    for (const Communication* one : active_) {
      if (moment < one->waited_until) continue;
      all_wait = false;
      any_coverable = any_coverable || one->coverable;
    }
    if (all_wait) return &ExposureSums::peer;
    if (compute_.host_is_late(moment)) return &ExposureSums::host;
    return any_coverable ? &ExposureSums::short_cover : &ExposureSums::no_partner;
  }

  // Who communicates at that moment.
  void advance(std::int64_t moment) {
    while (next_ < all_.size() && all_[next_].time.begin <= moment) {
      active_.push_back(&all_[next_++]);
    }
    std::erase_if(active_, [&](const Communication* one) { return one->time.end <= moment; });
  }

  const std::vector<Communication>& all_;
  const ComputeLane& compute_;
  std::vector<std::int64_t> marks_;
  std::size_t next_ = 0;
  std::vector<const Communication*> active_;
};

ExposureSums sums_of(const std::vector<Communication>& all, const ComputeLane& compute) {
  Intervals times;
  for (const Communication& one : all) times.push_back(one.time);
  const Intervals communication = unite(std::move(times));
  const Intervals exposed = subtract(communication, compute.busy());
  ExposureSums sums{.communication = length(communication), .exposed = length(exposed)};
  sums.hidden_any = sums.communication - sums.exposed;
  sums.hidden_gemm = sums.communication - length(subtract(communication, compute.gemm()));
  Judge judge(all, compute);
  for (const Interval& stretch : exposed) judge.judge(stretch, sums);
  return sums;
}

}  // namespace

void add(SumsByKind& into, const SumsByKind& more) {
  for (const auto& [kind, sums] : more) {
    ExposureSums& sum = into[kind];
    sum.communication += sums.communication;
    sum.hidden_any += sums.hidden_any;
    sum.hidden_gemm += sums.hidden_gemm;
    sum.exposed += sums.exposed;
    sum.no_partner += sums.no_partner;
    sum.short_cover += sums.short_cover;
    sum.peer += sums.peer;
    sum.host += sums.host;
  }
}

SumsByKind rank_exposure(const Timeline& timeline, int run, const Operations& operations) {
  const ComputeLane compute(timeline, run);
  SumsByKind sums;
  for (const auto& [kind, all] : communications_of(timeline, run, operations)) {
    sums.emplace(kind, sums_of(all, compute));
  }
  return sums;
}

}  // namespace weft::trace
