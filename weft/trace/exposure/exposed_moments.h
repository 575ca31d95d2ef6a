// Cause of each moment without compute.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "weft/trace/compute_lane.h"
#include "weft/trace/exposure/intervals.h"

namespace weft::trace {

// Node of a communication lane.
struct Communication {
  Interval time;
  std::int64_t waited_until = 0;  // end of the wait for its peers
  bool coverable = false;
  bool is_pipeline = false;
};

enum class Cause {
  // During communication; see exposure.h.
  Peer,
  PipelinePeer,  // as Peer, and the waiting node receives from another stage
  Host,
  NoPartner,
  ShortCover,
  Slowed,  // prolonged by transfers, visible beside it or not
  // Without communication.
  HostAlone,
  Nothing,
};

class ExposedMoments {
 public:
  // `compute` must outlive this object.
  ExposedMoments(const std::vector<Communication>& all, const ComputeLane& compute);

  // Reports the causes of a stretch in which the compute lane was idle, part by part. Stretches are
  // passed in ascending order.
  using Tell = std::function<void(Cause cause, const Interval& part)>;
  void judge(const Interval& stretch, const Tell& tell);

 private:
  // Change of the counts below at a moment.
  struct Change {
    std::int64_t at = 0;
    int communicating = 0, pipeline = 0, moving = 0, coverable = 0;
  };

  Cause cause_at(std::int64_t moment);
  void advance(std::int64_t moment);

  const ComputeLane& compute_;
  std::vector<std::int64_t> marks_;  // the cause is constant between two marks
  std::vector<Change> changes_;      // by moment
  std::size_t next_ = 0;
  // current sums: communicating nodes, pipeline nodes among them, nodes that are not waiting, and
  // coverable nodes among the latter
  Change now_;
};

}  // namespace weft::trace
