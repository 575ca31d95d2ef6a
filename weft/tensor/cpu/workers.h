// Compute threads of a stream: one parallel loop at a time, always split the same way.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace weft::tensor::cpu {

class Workers {
 public:
  // `threads` includes the caller: 1 starts no thread. Throws SystemError if a thread cannot be
  // started.
  explicit Workers(int threads);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  int threads() const { return static_cast<int>(helpers_.size()) + 1; }

  // Calls body(i) for every i in [0, tasks) and returns when all calls are done. Any thread may run
  // any i, so a body writes only what its own i owns. The caller's cut must be a function of the
  // shapes alone; results then do not depend on the number of threads. The first exception of a
  // body is thrown here.
  void parallel(std::int64_t tasks, const std::function<void(std::int64_t)>& body);

 private:
  void stop();
  void serve();
  void take_tasks();
  void await_round(std::uint64_t seen);
  void await_helpers();

  std::vector<std::thread> helpers_;
  // Each loop is a round. A waiting thread spins for a while and then sleeps on its condition; the
  // thread that ends the wait wakes only sleepers.
  std::atomic<std::uint64_t> round_{0};
  std::atomic<int> busy_{0};  // helpers that have not finished the round
  std::atomic<int> sleeping_helpers_{0};
  std::atomic<bool> caller_sleeps_{false};
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  // State of the round, written by the caller before it begins; error_ under the mutex.
  const std::function<void(std::int64_t)>* body_ = nullptr;
  std::int64_t tasks_ = 0;
  std::exception_ptr error_;
  std::atomic<std::int64_t> next_{0};
};

}  // namespace weft::tensor::cpu
