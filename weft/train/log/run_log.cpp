#include "weft/train/log/run_log.h"

#include <chrono>

#include "weft/base/error.h"
#include "weft/base/text.h"

namespace weft::train {

using base::text;

RunLog::RunLog(const TrainRequest& request,
               RunFolder folder,
               std::int64_t step,
               std::int64_t not_finite)
    : request_(request), folder_(std::move(folder)), interval_(not_finite) {
  if (!request.config->logger.tensorboard_dir.empty()) board_.emplace(request, step);
}

void RunLog::tell(const StepRecord& record, Next next) {
  interval_.add(record);
  if (record.iteration % request_.config->logger.log_interval == 0 ||
      record.iteration == record.iterations || next == Next::End) {
    request_.log(log_line(interval_.mean(record), std::chrono::system_clock::now()));
    interval_ = LogInterval(record.not_finite);
  }
  request_.progress(record);
}

void RunLog::keep(const StepRecord& record, const tensor::Pool& memory) {
  ++lines_;
  try {
    if (record.iteration <= kept_to_) throw base::SystemError(why_lost_);  // no step twice
    folder_.metrics.append(metrics_json(record).dump());
    last_kept_ = record.iteration;
  } catch (const base::SystemError& error) {
    if (lost_lines_++ == 0) request_.log(text("warning: {}", error.what()));
    why_lost_ = error.what();
  }
  if (board_) board_->keep(record, memory);
  const auto tell_loss = [&](const std::string& where, double loss) {
    request_.log(text(" validation loss at iteration {}{} | lm loss value: {:.6E} |",
                      record.iteration,
                      where,
                      loss));
  };
  if (record.eval_loss) tell_loss("", *record.eval_loss);
  for (const SetLoss& set : record.eval_losses) tell_loss(" on " + set.name, set.loss);
  if (record.test_loss) tell_loss(" on test set", *record.test_loss);
}

void RunLog::go_back(std::int64_t step, std::int64_t not_finite) {
  interval_ = LogInterval(not_finite);
  if (board_) board_->go_back(step);
  try {
    tell_kept(drop_later_steps(folder_, step));
  } catch (const base::SystemError& error) {
    kept_to_ = last_kept_;
    why_lost_ = error.what();
    request_.log(text("warning: {}", error.what()));
  }
}

void RunLog::tell_kept(const std::optional<std::filesystem::path>& file) const {
  if (!file) return;
  request_.log(text("kept      lines of metrics.jsonl that this run does not go on from: {}",
                    file->string()));
}

std::string RunLog::failure() const {
  if (lost_lines_ == 0) return "";
  return text("metrics.jsonl lacks {} of {} lines: {}", lost_lines_, lines_, why_lost_);
}

}  // namespace weft::train
