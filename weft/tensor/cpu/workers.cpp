#include "weft/tensor/cpu/workers.h"

#include "weft/base/check.h"

namespace weft::tensor::cpu {

Workers::Workers(int threads) {
  CHECK(threads >= 1, "{} threads", threads);
  for (int i = 1; i < threads; ++i) helpers_.emplace_back([this] { serve(); });
}

Workers::~Workers() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread& helper : helpers_) helper.join();
}

void Workers::parallel(std::int64_t tasks, const std::function<void(std::int64_t)>& body) {
  if (helpers_.empty() || tasks <= 1) {
    for (std::int64_t i = 0; i < tasks; ++i) body(i);
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    body_ = &body;
    tasks_ = tasks;
    next_.store(0, std::memory_order_relaxed);
    busy_ = static_cast<int>(helpers_.size());
    error_ = nullptr;
    ++round_;
  }
  wake_.notify_all();
  take_tasks();
  std::unique_lock lock(mutex_);
  done_.wait(lock, [this] { return busy_ == 0; });
  if (error_) std::rethrow_exception(error_);
}

void Workers::serve() {
  std::uint64_t seen = 0;
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [&] { return stopping_ || round_ != seen; });
    if (stopping_) return;
    seen = round_;
    lock.unlock();
    take_tasks();
    lock.lock();
    if (--busy_ == 0) done_.notify_one();
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
