// Step output of rank 0: log lines, lines of metrics.jsonl and TensorBoard events.
#pragma once

#include <string>
#include <vector>

#include "weft/train/log/board.h"
#include "weft/train/log/run_folder.h"
#include "weft/train/trainer.h"

namespace weft::train {

class RunLog {
 public:
  // `request` must outlive it. `step`: steps done before a resumed run; `not_finite`: skipped steps
  // among them.
  RunLog(const TrainRequest& request, RunFolder folder, std::int64_t step, std::int64_t not_finite);

  const std::filesystem::path& folder() const { return folder_.path; }
  // Logs where lines of metrics.jsonl are that this run does not go on from.
  void tell_kept() const { tell_kept(folder_.kept); }

  enum class Next { Step, End };
  // Logs a step before its evaluation. At the end of the run it also logs the steps since the last
  // line.
  void tell(const StepRecord& record, Next next);
  // Stores a step after its evaluation. A full disk must not end a run whose weights may go
  // elsewhere: writing goes on, and failure() names the loss. `memory`: the pool of this rank.
  void keep(const StepRecord& record, const tensor::Pool& memory);

  // Goes back to the state after `step`; later lines move to a file of their own.
  void go_back(std::int64_t step, std::int64_t not_finite);

  // Reason why metrics.jsonl is incomplete; empty: complete.
  std::string failure() const;

  // Hands over the board at the end of the steps, for results known only then.
  std::optional<Board> take_board() { return std::move(board_); }

 private:
  void tell_kept(const std::optional<std::filesystem::path>& file) const;

  const TrainRequest& request_;
  RunFolder folder_;
  LogInterval interval_;
  std::optional<Board> board_;  // nullopt: the run writes no TensorBoard events
  std::int64_t lines_ = 0, lost_lines_ = 0;
  std::int64_t last_kept_ = 0;  // last step in metrics.jsonl
  std::int64_t kept_to_ = 0;    // lines of steps up to it could not be removed
  std::string why_lost_;
};

}  // namespace weft::train
