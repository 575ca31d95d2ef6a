#include "weft/base/parallel/parallel.h"

#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace weft::base {

void parallel(int threads, std::int64_t tasks, const std::function<void(std::int64_t)>& body) {
  std::atomic<std::int64_t> next = 0;
  std::mutex mutex;  // guards the error
  std::exception_ptr error;
  const auto work = [&] {
    try {
      for (std::int64_t i = next++; i < tasks; i = next++) body(i);
    } catch (...) {
      next = tasks;
      const std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> helpers;
    try {
      for (std::int64_t i = 1; i < threads && i < tasks; ++i) helpers.emplace_back(work);
    } catch (const std::system_error&) {
      // The threads that did start do the work.
    }
    work();
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace weft::base
