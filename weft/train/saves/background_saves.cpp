#include "weft/train/saves/background_saves.h"

#include <algorithm>
#include <memory>

#include "weft/base/check.h"
#include "weft/base/parallel/thread.h"

namespace weft::train {
BackgroundSaves::BackgroundSaves(Engine& engine, const Progress& progress)
    : engine_(engine),
      progress_(progress),
      talk_(engine),
      snapshot_(engine.device(), own_entries(engine, progress, talk_)) {
  // A first copy commits the memory now instead of during a step.
  tensor::Stream& stream = engine_.lanes()[schedule::Lane::Copy];
  snapshot_.copy(stream);
  stream.synchronize();
}

BackgroundSaves::~BackgroundSaves() {
  is_given_up_ = true;
  if (thread_.joinable()) thread_.join();
}

void BackgroundSaves::begin() {
  CHECK(stage_ == Stage::Idle, "a save is under way");
  place_.emplace(engine_, progress_);
  begun_ = std::chrono::steady_clock::now();
  stage_ = Stage::Due;
  if (engine_.rank() != 0) return;
  start([this, place = *place_] {
    std::string failure = make_room(place);
    seconds_ = since_begin();
    return failure;
  });
}

std::optional<EndedSave> BackgroundSaves::look() {
  switch (stage_) {
    case Stage::Idle:
      return std::nullopt;
    case Stage::Due:
      stage_ = Stage::Copied;
      [[fallthrough]];
    case Stage::Copied: {
      const bool has_answer = engine_.rank() != 0 || is_done();
      return talk_.gather({has_answer ? 1 : 0}).front() == 1 ? write() : std::nullopt;
    }
    case Stage::Writing: {
      const std::vector<std::int64_t> done = talk_.gather({is_done() ? 1 : 0});
      if (std::ranges::find(done, 0) == done.end()) hand_over();
      return std::nullopt;
    }
    case Stage::Finishing:
      return is_done() ? ended_with(take_result()) : std::nullopt;
  }
  UNREACHABLE("a stage of a save");
}

std::optional<EndedSave> BackgroundSaves::finish() {
  if (stage_ == Stage::Due) {
    engine_.program().gather_weights();
    tensor::Stream& stream = engine_.lanes()[schedule::Lane::Copy];
    snapshot_.copy(stream);
    stream.synchronize();
    stage_ = Stage::Copied;
  }
  if (stage_ == Stage::Copied) {
    std::optional<EndedSave> failed = write();
    if (failed) return failed;
  }
  if (stage_ == Stage::Writing) hand_over();
  return stage_ == Stage::Finishing ? ended_with(take_result()) : std::nullopt;
}

// Ends the save if rank 0 could not make the folder.
std::optional<EndedSave> BackgroundSaves::write() {
  const std::string failure = engine_.rank() == 0 ? take_result() : "";
  const bool has_folder = talk_.gather({failure.empty() ? 1 : 0}).front() == 1;
  if (!has_folder) return ended_with(failure);
  stage_ = Stage::Writing;
  start([this, place = *place_] {
    const checkpoint::ReadBlock copied = checkpoint::read_snapshot(snapshot_);
    const checkpoint::ReadBlock read =
        [&](std::size_t entry, std::uint64_t begin, std::uint64_t count) {
          if (is_given_up_) throw base::SystemError("the run ended before it was written");
          return copied(entry, begin, count);
        };
    return write_part(place, engine_.rank(), snapshot_.entries(), read);
  });
  return std::nullopt;
}

void BackgroundSaves::hand_over() {
  std::vector<std::string> told = talk_.collect(take_result());
  stage_ = Stage::Idle;
  if (engine_.rank() != 0) return;
  stage_ = Stage::Finishing;
  start([this, place = *place_, told = std::move(told)] {
    std::string failure = finish_save(place, told);
    seconds_ = since_begin();
    return failure;
  });
}

std::optional<EndedSave> BackgroundSaves::ended_with(const std::string& failure) {
  stage_ = Stage::Idle;
  if (engine_.rank() != 0) return std::nullopt;
  EndedSave end{.folder = place_->folder(),
                .seconds = seconds_,
                .failure = std::nullopt,
                .is_written = place_->is_written()};
  if (!failure.empty()) end.failure = failure_text(*place_, failure);
  return end;
}

double BackgroundSaves::since_begin() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count();
}

// Starts `work` on a thread; `work` returns its message. take_result() rethrows its exception.
void BackgroundSaves::start(std::function<std::string()> work) {
  const auto task = std::make_shared<std::packaged_task<std::string()>>(std::move(work));
  result_ = task->get_future();
  try {
    thread_ = base::start_thread("a thread that writes checkpoints", [task] { (*task)(); });
  } catch (const base::SystemError&) {
    (*task)();  // the run waits for it, and loses nothing
  }
}

bool BackgroundSaves::is_done() const {
  return result_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

std::string BackgroundSaves::take_result() {
  if (thread_.joinable()) thread_.join();
  return result_.get();
}

}  // namespace weft::train
