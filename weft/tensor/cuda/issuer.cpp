#include "weft/tensor/cuda/issuer.h"

#include <utility>

#include "weft/base/thread.h"

namespace weft::tensor::cuda {

bool Issuer::is_idle() {
  const std::lock_guard lock(mutex_);
  return queue_.empty() && !busy_;
}

void Issuer::push(std::uint64_t ticket, std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back({ticket, std::move(task)});
  }
  if (!thread_.joinable()) {
    thread_ = base::start_thread("the thread that issues to the GPU", [this] { serve(); });
  }
  pushed_.notify_one();
}

void Issuer::issue(std::uint64_t ticket) {
  issued_.store(ticket);
  issued_.notify_all();
}

void Issuer::await_issued(std::uint64_t ticket) const {
  std::uint64_t seen = issued_.load();
  while (seen < ticket) {
    issued_.wait(seen);
    seen = issued_.load();
  }
}

void Issuer::serve() {
  cudaSetDevice(device_.ordinal());  // an error of the card is told where the host waits
  std::unique_lock lock(mutex_);
  while (true) {
    pushed_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
    if (queue_.empty()) return;
    const Item item = std::move(queue_.front());
    queue_.pop_front();
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
    stopping_ = true;
  }
  pushed_.notify_one();
  thread_.join();
}

}  // namespace weft::tensor::cuda
