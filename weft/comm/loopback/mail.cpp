#include "weft/comm/loopback/mail.h"

#include <chrono>
#include <utility>

#include "weft/base/error.h"
#include "weft/base/text.h"

namespace weft::comm::loopback {

void Mail::announce() {
  const std::lock_guard lock(mutex_);
  is_announced_ = true;
}

bool Mail::must_wait() const {
  const std::lock_guard lock(mutex_);
  return is_announced_ && !has_come_;
}

void Mail::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::duration<double>(timeout_seconds_), [this] {
    return has_come_ || has_failed_;
  });
  if (has_come_) return;
  if (has_failed_) throw base::SystemError("this rank failed before it sent what would return");
  throw base::SystemError(
      base::text("nothing was sent that could return within {} s", timeout_seconds_));
}

bool Mail::keep(tensor::Transfers& transfers, std::span<const std::byte> message) {
  {
    const std::lock_guard lock(mutex_);
    if (is_taken_ || message.empty()) return false;
    is_taken_ = true;
  }
  const auto bytes = static_cast<std::int64_t>(message.size());
  std::shared_ptr<std::byte> memory = transfers.host_scratch(bytes);
  transfers.copy(memory.get(), message.data(), bytes);
  const std::lock_guard lock(mutex_);
  memory_ = std::move(memory);
  bytes_ = message.size();
  has_come_ = true;
  changed_.notify_all();
  return true;
}

std::span<const std::byte> Mail::kept() const {
  const std::lock_guard lock(mutex_);
  return {memory_.get(), bytes_};
}

void Mail::fail() {
  const std::lock_guard lock(mutex_);
  has_failed_ = true;
  changed_.notify_all();
}

}  // namespace weft::comm::loopback
