// Why no compute ran, moment by moment.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "weft/trace/compute_lane.h"
#include "weft/trace/intervals.h"

namespace weft::trace {

// A node of a communication lane.
struct Communication {
  Interval time;
  std::int64_t waited_until = 0;  // for its peers
  bool coverable = false;
  bool is_pipeline = false;
};

enum class Cause {
  // While something communicated; see exposure.h.
  Peer,
  PipelinePeer,  // the same, and what waits is a receive from another stage
  Host,
  NoPartner,
  ShortCover,
  Slowed,  // compute that transfers make longer, whether one is seen beside it or not
  // While nothing did.
  HostAlone,
  Nothing,
};

class ExposedMoments {
 public:
  // `compute` outlives it.
  ExposedMoments(const std::vector<Communication>& all, const ComputeLane& compute);

  // The causes of a stretch in which the compute lane was not busy, part after part. Stretches come
  // in ascending order.
  using Tell = std::function<void(Cause cause, const Interval& part)>;
  void judge(const Interval& stretch, const Tell& tell);

 private:
  // By how much the counts below change at a moment.
  struct Change {
    std::int64_t at = 0;
    int communicating = 0, pipeline = 0, moving = 0, coverable = 0;
  };

  Cause cause_at(std::int64_t moment);
  void advance(std::int64_t moment);

  const ComputeLane& compute_;
  std::vector<std::int64_t> marks_;  // between two of them a cause holds throughout
  std::vector<Change> changes_;      // by moment
  std::size_t next_ = 0;
  Change now_;  // sums of the changes so far: nodes that communicate, of a pipeline, that do not
                // wait, and of these the coverable
};

}  // namespace weft::trace
