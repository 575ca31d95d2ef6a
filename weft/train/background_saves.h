// Checkpoints that are written while the run goes on (checkpoint.async_save). A save begins between
// two steps. The next step's graph copies the state (`snapshot`), while a thread of rank 0 makes a
// folder for it; then a thread of each rank writes. Ranks look at each other's threads between
// steps, and when all are done rank 0 makes a checkpoint of their files, on a thread too: threads
// never talk to other ranks, and between steps nobody waits for a disk.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <optional>
#include <string>
#include <thread>

#include "weft/train/save_parts.h"

namespace weft::train {

// How a save ended, as rank 0 knows it.
struct EndedSave {
  std::filesystem::path folder;        // of the step
  double seconds = 0;                  // from its begin until it was whole
  std::optional<std::string> failure;  // see save_checkpoint
  bool is_written = false;             // whatever failed after that
};

// Every rank has one and calls the same functions, while no step is under way. Results are rank
// 0's.
class BackgroundSaves {
 public:
  // Takes memory for the copy. Engine and progress outlive it.
  BackgroundSaves(Engine& engine, const Progress& progress);
  // What is not whole is left as after a kill.
  ~BackgroundSaves();
  BackgroundSaves(const BackgroundSaves&) = delete;
  BackgroundSaves& operator=(const BackgroundSaves&) = delete;

  // A save of the state as it is now. The one before must have ended (finish).
  void begin();

  // For the step after begin(); null: nothing is to be copied.
  const checkpoint::Snapshot* due() const { return stage_ == Stage::Due ? &snapshot_ : nullptr; }

  // After every step. Never waits for a disk.
  std::optional<EndedSave> look();

  // Waits for the save under way; none where there is none.
  std::optional<EndedSave> finish();

  std::size_t bytes() const { return snapshot_.bytes(); }  // of host memory, on this rank

 private:
  enum class Stage {
    Idle,
    Due,        // to be copied by the next step; rank 0 makes a folder
    Copied,     // there may be no folder yet
    Writing,    // each rank its file
    Finishing,  // rank 0 makes a checkpoint of them; the others are idle
  };
  std::optional<EndedSave> write();
  void hand_over();
  std::optional<EndedSave> ended_with(const std::string& failure);
  double since_begin() const;
  void start(std::function<std::string()> work);
  bool is_done() const;
  std::string take_result();

  Engine& engine_;
  const Progress& progress_;
  SaveTalk talk_;
  const checkpoint::Snapshot snapshot_;
  Stage stage_ = Stage::Idle;
  std::optional<SavePlace> place_;  // of the save under way
  std::chrono::steady_clock::time_point begun_;
  double seconds_ = 0;  // of the last one, by the thread that made it whole
  std::atomic<bool> is_given_up_ = false;
  std::thread thread_;
  std::future<std::string> result_;
};

}  // namespace weft::train
