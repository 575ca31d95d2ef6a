// What rank 0 tells and keeps of its run's steps: log lines, a line of metrics.jsonl each, and
// events for TensorBoard.
#pragma once

#include <string>
#include <vector>

#include "weft/train/board.h"
#include "weft/train/run_folder.h"
#include "weft/train/trainer.h"

namespace weft::train {

class RunLog {
 public:
  // `request` must outlive it. `step`: the steps done before, of a run that goes on; `not_finite`:
  // those of them that changed nothing.
  RunLog(const TrainRequest& request, RunFolder folder, std::int64_t step, std::int64_t not_finite);

  const std::filesystem::path& folder() const { return folder_.path; }

  enum class Next { Step, End };
  // After a step, before it evaluates. Where the run ends with it, the steps since the last line
  // are told too.
  void tell(const StepRecord& record, Next next);
  // After it has evaluated. A disk that is full must not end a run whose weights may go to another:
  // lines are tried on, and failure() says what is missing.
  // `memory` is this rank's.
  void keep(const StepRecord& record, const tensor::Pool& memory);

  // The run is back after `step`: what was kept of later ones goes.
  void go_back(std::int64_t step, std::int64_t not_finite);

  // Why metrics.jsonl is not whole; empty: it is.
  std::string failure() const;

  // At the end of the steps, for what is known only then.
  std::optional<Board> take_board() { return std::move(board_); }

 private:
  const TrainRequest& request_;
  RunFolder folder_;
  LogInterval interval_;
  std::optional<Board> board_;  // where the run shows something in TensorBoard
  std::int64_t lines_ = 0, lost_lines_ = 0;
  std::int64_t last_kept_ = 0;  // step in metrics.jsonl
  std::int64_t kept_to_ = 0;    // lines of steps up to it could not be taken out again
  std::string why_lost_;
};

}  // namespace weft::train
