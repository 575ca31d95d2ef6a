// The steps of one setting over several runs of it.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <vector>

#include "weft/config/config.h"
#include "weft/trace/span.h"

namespace weft::measure {

struct TimedRunRequest {
  const config::Config& config;  // not judged
  std::int64_t steps = 0;
  std::int64_t warm_up = 0;  // of them, the first that are not timed
  std::filesystem::path folder;
  const std::atomic<bool>* stop = nullptr;
  std::function<void(std::int64_t step)> progress;
};

// The times of one run's steps behind its warm-up, without any trace; fewer where it was stopped.
// SystemError where it did not run to its end.
std::vector<double> untraced_steps(const TimedRunRequest& request);

class TimedRuns {
 public:
  // Another run. Its traced steps are runs of the timelines, beside those of the runs before.
  void add(const TimedRunRequest& request);

  bool empty() const { return ms_.empty(); }
  double median_ms() const;
  const std::vector<double>& ms() const { return ms_; }
  const std::vector<trace::Timeline>& timelines() const { return timelines_; }

 private:
  std::vector<double> ms_;  // of the timed steps
  std::vector<trace::Timeline> timelines_;
  int traced_ = 0;
};

}  // namespace weft::measure
