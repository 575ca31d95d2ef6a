// Hands the work of one stream to the GPU, in order.
//
// Work that is ready is issued by the enqueuing thread. Some work must first wait on the host: for
// host work, or for a position that another stream has not issued yet. A thread of the stream
// issues such work and all that follows it. The enqueuing thread therefore never blocks, and the
// GPU never holds a wait that only the host could end.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "weft/tensor/cuda/device.h"

namespace weft::tensor::cuda {

class Issuer {
 public:
  explicit Issuer(const CudaDevice& device) : device_(device) {}
  // Finishes queued work first.
  ~Issuer() { stop(); }
  Issuer(const Issuer&) = delete;
  Issuer& operator=(const Issuer&) = delete;

  // Runs `task` after all tasks before it: at once if the queue is empty, else on the stream's
  // thread. `ticket` counts as issued when `task` returns. `task` does not throw. One thread calls
  // this function and the next two.
  template <typename Task>
  void run(std::uint64_t ticket, const Task& task) {
    run(ticket, task, [&] { return task; });
  }
  // Variant of run: `later()` makes the queued task, and is called only if one is needed.
  template <typename Task, typename Later>
  void run(std::uint64_t ticket, const Task& task, const Later& later) {
    if (!is_idle()) return push(ticket, later());
    task();
    issue(ticket);
  }
  // Runs `task`, which may block, on the stream's thread.
  void push(std::uint64_t ticket, std::function<void()> task);

  // True if the work of this ticket has been issued to the GPU, or is done. Any thread may call
  // these.
  bool has_issued(std::uint64_t ticket) const { return issued_.load() >= ticket; }
  void await_issued(std::uint64_t ticket) const;

  // Ends the thread after the queued tasks.
  void stop();

 private:
  struct Item {
    std::uint64_t ticket = 0;
    std::function<void()> task;
  };

  // Spins for a moment until `is_so`, if spare cores allow it. A sleeping thread wakes late, and
  // the GPU idles meanwhile.
  template <typename IsSo>
  static void stay_awake_for(const IsSo& is_so);
  bool is_idle();
  void issue(std::uint64_t ticket);
  void serve();

  static std::atomic<int> threads_;  // threads of all issuers

  const CudaDevice& device_;
  std::atomic<std::uint64_t> issued_ = 0;
  std::atomic<bool> has_work_ = false;  // queued work or a stop; readable without the mutex
  std::mutex mutex_;                    // guards the next three
  std::deque<Item> queue_;
  bool busy_ = false;  // the thread runs a task
  bool stopping_ = false;
  std::condition_variable pushed_;
  std::thread thread_;  // started at the first push
};

}  // namespace weft::tensor::cuda
