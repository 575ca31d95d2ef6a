// Hands the work of one stream to the card, in order.
//
// Work that can be handed over at once is, by the thread that enqueues it. What must wait for
// something on the host first (work of the host itself, a position that another stream has not
// handed over yet) and all that follows it is handed over by a thread of the stream, so that
// whoever enqueues never blocks, and the card never holds a wait that only the host could end.
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
  // Ends what was enqueued first.
  ~Issuer() { stop(); }
  Issuer(const Issuer&) = delete;
  Issuer& operator=(const Issuer&) = delete;

  // Runs `task` after all before it: now where nothing is ahead of it, else on the stream's thread.
  // `ticket` is issued when it returns. `task` does not throw. One thread calls these three.
  template <typename Task>
  void run(std::uint64_t ticket, const Task& task) {
    run(ticket, task, [&] { return task; });
  }
  // As run; what the stream's thread runs is made by `later()`, and only where it is to.
  template <typename Task, typename Later>
  void run(std::uint64_t ticket, const Task& task, const Later& later) {
    if (!is_idle()) return push(ticket, later());
    task();
    issue(ticket);
  }
  // Runs `task`, which may block, on the stream's thread.
  void push(std::uint64_t ticket, std::function<void()> task);

  // What the work of this ticket does has been handed to the card, or done. Any thread may ask.
  bool has_issued(std::uint64_t ticket) const { return issued_.load() >= ticket; }
  void await_issued(std::uint64_t ticket) const;

  // Ends the thread when it has done what was pushed.
  void stop();

 private:
  struct Item {
    std::uint64_t ticket = 0;
    std::function<void()> task;
  };

  // Waits until it is so, for a moment and without sleeping, where cores are left for that: a
  // thread that sleeps is woken late, and meanwhile the card has nothing to do.
  template <typename IsSo>
  static void stay_awake_for(const IsSo& is_so);
  bool is_idle();
  void issue(std::uint64_t ticket);
  void serve();

  static std::atomic<int> threads_;  // of all issuers

  const CudaDevice& device_;
  std::atomic<std::uint64_t> issued_ = 0;
  std::atomic<bool> has_work_ = false;  // pushed, or told to stop; may be read without the mutex
  std::mutex mutex_;                    // of the next three
  std::deque<Item> queue_;
  bool busy_ = false;  // the thread has a task
  bool stopping_ = false;
  std::condition_variable pushed_;
  std::thread thread_;  // made at the first push
};

}  // namespace weft::tensor::cuda
