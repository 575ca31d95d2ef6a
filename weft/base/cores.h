// Which cores this thread may use, keeping it to one, and how soon it gets it.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

namespace weft::base {

// The cores the calling thread may run on, ascending; at least one. SystemError where the system
// does not tell.
std::vector<int> usable_cores();

// The cores of the machine that are in use, whoever may run on them.
int online_cores();

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

// The cores of one of the machine's nodes (NUMA: cores with memory of their own), as the system
// writes them, for example "0-3,8". Empty where there is no such node or it writes anything else.
std::vector<int> cores_of_node(int node,
                               const std::filesystem::path& nodes = "/sys/devices/system/node");
std::vector<int> parse_cores(std::string_view list);

// Keeps the calling thread, and the threads it starts from now on, on those cores of a node that it
// may use. Where there are none nothing changes.
void stay_on_node(int node);

// Lets sleeps of the calling thread, and of the threads it starts from now on, end on time. Linux
// otherwise rounds each up by 50 microseconds to save wake-ups, which is more than a link's
// latency.
void wake_promptly();

// Lets the calling thread, and the threads it starts from now on, run only while no other thread
// wants the core. For threads that compute on cores that only ranks of one run use: what
// communicates and issues then goes first, always. Where others use the core too it would starve.
void give_way();

}  // namespace weft::base
