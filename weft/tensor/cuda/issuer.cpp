#include "weft/tensor/cuda/issuer.h"

#include <chrono>
#include <utility>

#include "weft/base/parallel/thread.h"

namespace weft::tensor::cuda {
namespace {

// Longer than a layer takes: the host waits that long for the counts of the next layer. A sleeping
// thread wakes some 80 us late, while the GPU waits for its next work.
constexpr std::chrono::milliseconds kAwake{20};

}  // namespace

std::atomic<int> Issuer::threads_ = 0;

template <typename IsSo>
void Issuer::stay_awake_for(const IsSo& is_so) {
  if (2 * threads_ > int(std::thread::hardware_concurrency())) return;
  const auto end = std::chrono::steady_clock::now() + kAwake;
  while (!is_so() && std::chrono::steady_clock::now() < end) {
  }
}

bool Issuer::is_idle() {
  const std::lock_guard lock(mutex_);
  return queue_.empty() && !busy_;
}

void Issuer::push(std::uint64_t ticket, std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back({ticket, std::move(task)});
    has_work_ = true;
  }
  if (!thread_.joinable()) {
    thread_ = base::start_thread("the thread that issues to the GPU", [this] { serve(); });
    ++threads_;
  }
  pushed_.notify_one();
}

void Issuer::issue(std::uint64_t ticket) {
  issued_.store(ticket);
  issued_.notify_all();
}

void Issuer::await_issued(std::uint64_t ticket) const {
  stay_awake_for([&] { return has_issued(ticket); });
  std::uint64_t seen = issued_.load();
  while (seen < ticket) {
    issued_.wait(seen);
    seen = issued_.load();
  }
}

void Issuer::serve() {
  cudaSetDevice(device_.ordinal());  // a GPU error is thrown where the host waits
  while (true) {
    stay_awake_for([&] { return has_work_.load(); });
    std::unique_lock lock(mutex_);
    pushed_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
    if (queue_.empty()) return;
    const Item item = std::move(queue_.front());
    queue_.pop_front();
    has_work_ = stopping_ || !queue_.empty();
    busy_ = true;
    lock.unlock();
    item.task();
    issue(item.ticket);
    lock.lock();
    busy_ = false;
  }
}

void Issuer::stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = has_work_ = true;
  }
  pushed_.notify_one();
  thread_.join();
  --threads_;
}

}  // namespace weft::tensor::cuda
