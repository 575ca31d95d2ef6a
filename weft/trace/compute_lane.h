// Compute lane of one rank in one run: busy times, and times at which the host was late.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "weft/trace/exposure/intervals.h"
#include "weft/trace/run_spans.h"

namespace weft::trace {

// Name of the part of a compute node that transfers prolong; its kind is Communication.
inline constexpr std::string_view kSlowed = "slowed";

class ComputeLane {
 public:
  struct Node {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    std::int64_t ready = 0;  // everything it waits for is complete
  };

  explicit ComputeLane(const RunSpans& of_run);
  // Lane of another program's trace: two sets, and nodes in lane order.
  ComputeLane(Intervals busy, Intervals gemm, std::vector<Node> nodes);

  const Intervals& busy() const { return busy_; }  // any operation runs
  const Intervals& gemm() const { return gemm_; }  // a GEMM or attention runs
  // Times that transfers add to nodes of a simulated step; not part of busy().
  const Intervals& slowed() const { return slowed_; }
  bool is_slowed(std::int64_t moment) const;

  // Asked for a moment when the lane is not busy. True if only the issue is late: the current node
  // has begun and is between two operations, or the next node has all that it waits for. A node
  // that waits for the host waits for the host's own inputs; the host's own time counts as
  // lateness.
  bool host_is_late(std::int64_t moment) const;
  // Moments at which host_is_late may change while the lane is not busy.
  std::vector<std::int64_t> changes() const;

 private:
  Intervals busy_, gemm_, slowed_;
  std::vector<Node> nodes_;  // in lane order
};

}  // namespace weft::trace
