// The compute lane of one rank in one run: when it was busy, and when the host let it wait.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "weft/trace/intervals.h"
#include "weft/trace/run_spans.h"

namespace weft::trace {

// The name of such a part of a node on the compute lane, of kind Communication.
inline constexpr std::string_view kSlowed = "slowed";

class ComputeLane {
 public:
  struct Node {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    std::int64_t ready = 0;  // all it waits for is over
  };

  explicit ComputeLane(const RunSpans& of_run);
  // Of another program's: both sets, and nodes in lane order.
  ComputeLane(Intervals busy, Intervals gemm, std::vector<Node> nodes);

  const Intervals& busy() const { return busy_; }  // with any operation
  const Intervals& gemm() const { return gemm_; }  // with a matrix product or attention
  // By what transfers beside them make the nodes of a simulated step longer: not busy.
  const Intervals& slowed() const { return slowed_; }
  bool is_slowed(std::int64_t moment) const;

  // At a moment when the lane is not busy: true if it could be, and only the issue is late. The
  // node it is in has begun and stands between two operations, or the next node in lane order has
  // all that it waits for. A node that waits for the host waits for what the host waits for: the
  // host's own time is its lateness.
  bool host_is_late(std::int64_t moment) const;
  // The moments at which that may change while the lane is not busy.
  std::vector<std::int64_t> changes() const;

 private:
  Intervals busy_, gemm_, slowed_;
  std::vector<Node> nodes_;  // in lane order
};

}  // namespace weft::trace
