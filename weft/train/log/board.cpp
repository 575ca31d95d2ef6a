#include "weft/train/log/board.h"

#include <chrono>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/train/log/run_folder.h"

namespace weft::train {
namespace {

using base::text;

std::filesystem::path writable_folder(const config::Config& config) {
  std::filesystem::path folder = config.logger.tensorboard_dir;
  make_writable_folder(folder, "logger.tensorboard_dir");
  return folder;
}

void move_to_end(std::vector<events::Scalar> from, std::vector<events::Scalar>& to) {
  std::ranges::move(from, std::back_inserter(to));
}

}  // namespace

Board::Board(const TrainRequest& request, std::int64_t step) : request_(&request) {
  file_.emplace(writable_folder(request.config), step);
}

void Board::keep(const StepRecord& record, const tensor::Pool& memory) {
  const config::Config& config = request_->config;
  StepScalars shown = evaluation_scalars(record, config);
  if (record.iteration % config.logger.tensorboard_log_interval == 0) {
    StepScalars step = step_scalars(record, config, memory);
    move_to_end(std::move(step.by_step), shown.by_step);
    move_to_end(std::move(step.by_samples), shown.by_samples);
  }
  append({{.step = record.iteration, .scalars = std::move(shown.by_step)},
          {.step = record.consumed_samples, .scalars = std::move(shown.by_samples)}});
}

void Board::keep(const trace::Exposure& exposure, std::int64_t step) {
  append({{.step = step, .scalars = exposure_scalars(exposure)}});
}

void Board::go_back(std::int64_t step) {
  file_.reset();  // releases the lock on the events that are cut
  try {
    file_.emplace(writable_folder(request_->config), step);
  } catch (const base::SystemError& error) {
    request_->log(text("warning: {}", error.what()));
    why_lost_ = error.what();
  }
}

void Board::append(std::vector<events::Event> all) {
  std::erase_if(all, [](const events::Event& event) { return event.scalars.empty(); });
  if (all.empty()) return;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  for (events::Event& event : all) event.seconds = std::chrono::duration<double>(now).count();
  ++writes_;
  if (!file_) {
    ++lost_writes_;
    return;
  }
  try {
    file_->append(all);
  } catch (const base::SystemError& error) {
    if (lost_writes_++ == 0) request_->log(text("warning: {}", error.what()));
    why_lost_ = error.what();
  }
}

std::string Board::failure() const {
  if (lost_writes_ == 0) return "";
  return text("logger.tensorboard_dir lacks {} of {}: {}",
              lost_writes_,
              base::counted(writes_, "step"),
              why_lost_);
}

}  // namespace weft::train
