// Which cores this thread may use, keeping it to one, and how soon it gets it.
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

// Lets the calling thread run as soon as it has something to do, even where another thread keeps
// the core busy: its sleeps end on time, and it asks for the core in short pieces, which the
// scheduler grants at once. For threads that mostly wait and do little. Linux otherwise rounds a
// sleep up by 50 microseconds and leaves the core to a busy thread until the next tick, several
// milliseconds later: longer than most messages take.
void wake_promptly();

// Lets the calling thread, and the threads it starts from now on, run only while no other thread
// wants the core. For threads that compute on a core of the rank's own: what communicates and
// issues then goes first, always. Where others use the core too it would starve.
void give_way();

}  // namespace weft::base
