// Asynchronous checkpoints (checkpoint.async_save): written while the run continues.
//
// A save begins between two steps. The next step's graph copies the state (`snapshot`), while a
// thread of rank 0 makes the folder. Then a thread of each rank writes its shard. Between steps the
// ranks compare the states of their threads. When all are done, a thread of rank 0 completes the
// checkpoint. These threads never talk to other ranks, and no step waits for a disk.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <optional>
#include <string>
#include <thread>

#include "weft/train/saves/save_parts.h"

namespace weft::train {

// Result of a save, known on rank 0.
struct EndedSave {
  std::filesystem::path folder;        // folder of the step
  double seconds = 0;                  // from the begin to the complete checkpoint
  std::optional<std::string> failure;  // see save_checkpoint
  bool is_written = false;  // true if the checkpoint is complete, even if a later action failed
};

// One per rank; all ranks call the same functions, between steps. Only rank 0 gets results.
class BackgroundSaves {
 public:
  // Allocates the memory of the copy. Engine and progress must outlive it.
  BackgroundSaves(Engine& engine, const Progress& progress);
  // Leaves an incomplete save as a kill would.
  ~BackgroundSaves();
  BackgroundSaves(const BackgroundSaves&) = delete;
  BackgroundSaves& operator=(const BackgroundSaves&) = delete;

  // Begins a save of the current state. The previous save must have ended (finish).
  void begin();

  // Snapshot for the step after begin(); nullptr: no copy due.
  const checkpoint::Snapshot* due() const { return stage_ == Stage::Due ? &snapshot_ : nullptr; }

  // Call after every step. Never waits for a disk.
  std::optional<EndedSave> look();

  // Waits for the save in flight; nullopt: none.
  std::optional<EndedSave> finish();

  std::size_t bytes() const { return snapshot_.bytes(); }  // host memory on this rank

 private:
  enum class Stage {
    Idle,
    Due,        // the next step copies; rank 0 makes the folder
    Copied,     // copied; the folder may not exist yet
    Writing,    // each rank writes its shard
    Finishing,  // rank 0 completes the checkpoint; the others are idle
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
  std::optional<SavePlace> place_;  // place of the save in flight
  std::chrono::steady_clock::time_point begun_;
  double seconds_ = 0;  // duration of the last save, measured by the thread that completed it
  std::atomic<bool> is_given_up_ = false;
  std::thread thread_;
  std::future<std::string> result_;
};

}  // namespace weft::train
