#include "weft/base/parallel/bell.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>

namespace weft::base {
namespace {

// Errors are ignored: the callers check the count again.
void futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value) {
  static_assert(sizeof word == sizeof(std::uint32_t) &&
                std::atomic<std::uint32_t>::is_always_lock_free);
  syscall(SYS_futex, &word, operation, value, nullptr, nullptr, 0);
}

}  // namespace

void Bell::ring() {
  // Sequentially consistent, as in wait(): either this thread sees the waiter, or the waiter the
  // count.
  count_.fetch_add(1);
  if (waiting_.load() > 0) futex(count_, FUTEX_WAKE_PRIVATE, INT_MAX);
}

void Bell::wait(std::uint32_t seen) {
  waiting_.fetch_add(1);
  if (count_.load() == seen) futex(count_, FUTEX_WAIT_PRIVATE, seen);
  waiting_.fetch_sub(1);
}

}  // namespace weft::base
