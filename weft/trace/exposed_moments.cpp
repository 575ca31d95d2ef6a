#include "weft/trace/exposed_moments.h"

#include <algorithm>

namespace weft::trace {

ExposedMoments::ExposedMoments(const std::vector<Communication>& all, const ComputeLane& compute)
    : all_(all), compute_(compute) {
  for (const Communication& one : all) {
    marks_.insert(marks_.end(), {one.time.begin, one.time.end, one.waited_until});
  }
  const std::vector<std::int64_t> changes = compute.changes();
  marks_.insert(marks_.end(), changes.begin(), changes.end());
  std::ranges::sort(marks_);
}

void ExposedMoments::judge(const Interval& stretch, const Tell& tell) {
  auto mark = std::ranges::upper_bound(marks_, stretch.begin);
  for (std::int64_t begin = stretch.begin; begin < stretch.end;) {
    while (mark != marks_.end() && *mark <= begin) ++mark;
    const std::int64_t end = mark == marks_.end() ? stretch.end : std::min(*mark, stretch.end);
    tell(cause_at(begin), {begin, end});
    begin = end;
  }
}

Cause ExposedMoments::cause_at(std::int64_t moment) {
  advance(moment);
  if (active_.empty()) return compute_.host_is_late(moment) ? Cause::HostAlone : Cause::Nothing;
  bool all_wait = true, any_coverable = false, any_pipeline = false;
  for (const Communication* one : active_) {
    any_pipeline = any_pipeline || one->is_pipeline;
    if (moment < one->waited_until) continue;
    all_wait = false;
    any_coverable = any_coverable || one->coverable;
  }
  if (all_wait) return any_pipeline ? Cause::PipelinePeer : Cause::Peer;
  if (compute_.host_is_late(moment)) return Cause::Host;
  return any_coverable ? Cause::ShortCover : Cause::NoPartner;
}

// Who communicates at that moment.
void ExposedMoments::advance(std::int64_t moment) {
  while (next_ < all_.size() && all_[next_].time.begin <= moment) {
    active_.push_back(&all_[next_++]);
  }
  std::erase_if(active_, [&](const Communication* one) { return one->time.end <= moment; });
}

}  // namespace weft::trace
