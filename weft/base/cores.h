// Which cores this thread may use, and keeping it to one.
#pragma once

#include <vector>

namespace weft::base {

// The cores the calling thread may run on, ascending; at least one. SystemError where the system
// does not tell.
std::vector<int> usable_cores();

// Keeps the calling thread, and the threads it starts meanwhile, on one core. Ends on the thread
// it began on, which may then run where it could before.
class StayOnCore {
 public:
  explicit StayOnCore(int core);
  ~StayOnCore();
  StayOnCore(const StayOnCore&) = delete;
  StayOnCore& operator=(const StayOnCore&) = delete;

 private:
  std::vector<int> before_;
};

}  // namespace weft::base
