#include "weft/train/run_log.h"

#include <chrono>

#include "weft/base/error.h"
#include "weft/base/text.h"

namespace weft::train {

using base::text;

void RunLog::tell(const StepRecord& record, Next next) {
  interval_.add(record);
  if (record.iteration % request_.config->logger.log_interval == 0 ||
      record.iteration == record.iterations || next == Next::End) {
    request_.log(log_line(interval_.mean(record), std::chrono::system_clock::now()));
    interval_ = LogInterval(record.not_finite);
  }
  request_.progress(record);
}

void RunLog::keep(const StepRecord& record) {
  ++lines_;
  try {
    folder_.metrics.append(metrics_json(record).dump());
  } catch (const base::SystemError& error) {
    if (lost_lines_++ == 0) request_.log(text("warning: {}", error.what()));
    why_lost_ = error.what();
  }
  if (!record.eval_loss) return;
  request_.log(text(" validation loss at iteration {} | lm loss value: {:.6E} |",
                    record.iteration,
                    *record.eval_loss));
}

void RunLog::go_back(std::int64_t step, std::int64_t not_finite) {
  interval_ = LogInterval(not_finite);
  try {
    drop_later_steps(folder_, step);
  } catch (const base::SystemError& error) {
    request_.log(text("warning: {}", error.what()));
  }
}

std::string RunLog::failure() const {
  if (lost_lines_ == 0) return "";
  return text("metrics.jsonl lacks {} of {} lines: {}", lost_lines_, lines_, why_lost_);
}

}  // namespace weft::train
