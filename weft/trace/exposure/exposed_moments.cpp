#include "weft/trace/exposure/exposed_moments.h"

#include <algorithm>

namespace weft::trace {

ExposedMoments::ExposedMoments(const std::vector<Communication>& all, const ComputeLane& compute)
    : compute_(compute) {
  for (const Communication& one : all) {
    const auto [begin, end] = one.time;
    marks_.insert(marks_.end(), {begin, end, one.waited_until});
    if (begin >= end) continue;
    const int pipeline = one.is_pipeline ? 1 : 0, coverable = one.coverable ? 1 : 0;
    changes_.push_back({.at = begin, .communicating = 1, .pipeline = pipeline});
    changes_.push_back({.at = end, .communicating = -1, .pipeline = -pipeline});
    if (one.waited_until >= end) continue;
    const std::int64_t moves = std::max(begin, one.waited_until);
    changes_.push_back({.at = moves, .moving = 1, .coverable = coverable});
    changes_.push_back({.at = end, .moving = -1, .coverable = -coverable});
  }
  std::ranges::sort(changes_, {}, &Change::at);
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
  if (compute_.is_slowed(moment)) return Cause::Slowed;
  if (now_.communicating == 0) {
    return compute_.host_is_late(moment) ? Cause::HostAlone : Cause::Nothing;
  }
  if (now_.moving == 0) return now_.pipeline > 0 ? Cause::PipelinePeer : Cause::Peer;
  if (compute_.host_is_late(moment)) return Cause::Host;
  return now_.coverable > 0 ? Cause::ShortCover : Cause::NoPartner;
}

// Applies the changes up to `moment`: a node that ends there no longer communicates.
void ExposedMoments::advance(std::int64_t moment) {
  for (; next_ < changes_.size() && changes_[next_].at <= moment; ++next_) {
    const Change& change = changes_[next_];
    now_.communicating += change.communicating;
    now_.pipeline += change.pipeline;
    now_.moving += change.moving;
    now_.coverable += change.coverable;
  }
}

}  // namespace weft::trace
