#include "weft/tensor/cpu/workers.h"

#include <sched.h>

#include <chrono>

#include "weft/base/check.h"
#include "weft/base/parallel/thread.h"

namespace weft::tensor::cpu {
namespace {

// Waking a thread takes tens of microseconds, as long as many an operation; a step has hundreds in
// sequence. A waiting thread therefore polls for a short while: first keeping its core, then
// yielding it, then it sleeps.
constexpr std::chrono::microseconds kKeepsItsCore{20}, kLooks{400};

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

// Polls `over`; false if it stays false for a while.
template <typename Over>
bool look(const Over& over) {
  const auto start = std::chrono::steady_clock::now();
  while (true) {
    for (int i = 0; i < 32; ++i) {
      if (over()) return true;
      pause();
    }
    const auto waited = std::chrono::steady_clock::now() - start;
    if (waited > kLooks) return false;
    if (waited > kKeepsItsCore) sched_yield();
  }
}

}  // namespace

Workers::Workers(int threads) {
  CHECK(threads >= 1, "{} threads", threads);
  try {
    for (int i = 1; i < threads; ++i) {
      helpers_.push_back(base::start_thread("a compute thread", [this] { serve(); }));
    }
  } catch (...) {
    stop();
    throw;
  }
}

Workers::~Workers() { stop(); }

void Workers::stop() {
  stopping_ = true;
  { const std::lock_guard lock(mutex_); }
  wake_.notify_all();
  for (std::thread& helper : helpers_) helper.join();
}

void Workers::parallel(std::int64_t tasks, const std::function<void(std::int64_t)>& body) {
  if (helpers_.empty() || tasks <= 1) {
    for (std::int64_t i = 0; i < tasks; ++i) body(i);
    return;
  }
  body_ = &body;
  tasks_ = tasks;
  error_ = nullptr;
  next_ = 0;
  busy_ = static_cast<int>(helpers_.size());
  ++round_;
  if (sleeping_helpers_ > 0) {
    // A thread that counted itself as sleeping does sleep once the mutex is free.
    { const std::lock_guard lock(mutex_); }
    wake_.notify_all();
  }
  take_tasks();
  await_helpers();
  if (error_) std::rethrow_exception(error_);
}

void Workers::await_helpers() {
  const auto over = [this] { return busy_ == 0; };
  if (look(over)) return;
  std::unique_lock lock(mutex_);
  caller_sleeps_ = true;
  done_.wait(lock, over);
  caller_sleeps_ = false;
}

void Workers::await_round(std::uint64_t seen) {
  const auto over = [&] { return stopping_ || round_ != seen; };
  if (look(over)) return;
  std::unique_lock lock(mutex_);
  ++sleeping_helpers_;
  wake_.wait(lock, over);
  --sleeping_helpers_;
}

void Workers::serve() {
  std::uint64_t seen = 0;
  while (true) {
    await_round(seen);
    if (stopping_) return;
    ++seen;  // the caller starts no round before all helpers have finished the last
    take_tasks();
    if (--busy_ == 0 && caller_sleeps_) {
      { const std::lock_guard lock(mutex_); }
      done_.notify_one();
    }
  }
}

void Workers::take_tasks() {
  while (true) {
    const std::int64_t i = next_.fetch_add(1, std::memory_order_relaxed);
    if (i >= tasks_) return;
    try {
      (*body_)(i);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!error_) error_ = std::current_exception();
    }
  }
}

}  // namespace weft::tensor::cpu
