// What rank 0 tells and keeps of its run's steps: log lines, and a line of metrics.jsonl each.
#pragma once

#include <string>
#include <vector>

#include "weft/train/run_folder.h"
#include "weft/train/trainer.h"

namespace weft::train {

class RunLog {
 public:
  // `request` must outlive it. `not_finite`: the steps before the run that changed nothing.
  RunLog(const TrainRequest& request, RunFolder folder, std::int64_t not_finite)
      : request_(request), folder_(std::move(folder)), interval_(not_finite) {}

  const std::filesystem::path& folder() const { return folder_.path; }

  enum class Next { Step, End };
  // After a step, before it evaluates. Where the run ends with it, the steps since the last line
  // are told too.
  void tell(const StepRecord& record, Next next);
  // After it has evaluated. A disk that is full must not end a run whose weights may go to another:
  // lines are tried on, and failure() says what is missing.
  void keep(const StepRecord& record);

  // The run is back after `step`: what was kept of later ones goes.
  void go_back(std::int64_t step, std::int64_t not_finite);

  // Why metrics.jsonl is not whole; empty: it is.
  std::string failure() const;

 private:
  const TrainRequest& request_;
  RunFolder folder_;
  LogInterval interval_;
  std::int64_t lines_ = 0, lost_lines_ = 0;
  std::string why_lost_;
};

}  // namespace weft::train
