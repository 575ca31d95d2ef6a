// Step times of one setting over several runs.
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
  std::int64_t warm_up = 0;  // untimed steps at the beginning
  std::filesystem::path folder;
  const std::atomic<bool>* stop = nullptr;
  std::function<void(std::int64_t step)> progress;
};

// Step times of one run after its warm-up, without a trace; fewer if stopped. SystemError if the
// run fails.
std::vector<double> untraced_steps(const TimedRunRequest& request);

class TimedRuns {
 public:
  // Adds a run. Its traced steps are further runs of the timelines.
  void add(const TimedRunRequest& request);

  bool empty() const { return ms_.empty(); }
  double median_ms() const;
  const std::vector<double>& ms() const { return ms_; }
  const std::vector<trace::Timeline>& timelines() const { return timelines_; }

 private:
  std::vector<double> ms_;  // timed steps
  std::vector<trace::Timeline> timelines_;
  int traced_ = 0;
};

}  // namespace weft::measure
