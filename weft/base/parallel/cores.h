// Cores that a thread may use, pinning to a core, and scheduling priority.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

namespace weft::base {

// Cores that the calling thread may run on, ascending; at least one. Throws SystemError if the
// system does not tell.
std::vector<int> usable_cores();

// Number of online cores of the machine, usable by this thread or not.
int online_cores();

// Pins the calling thread, and threads it starts meanwhile, to one core. Must be destroyed on the
// same thread, which then may run on its earlier cores again.
class StayOnCore {
 public:
  explicit StayOnCore(int core);
  ~StayOnCore();
  StayOnCore(const StayOnCore&) = delete;
  StayOnCore& operator=(const StayOnCore&) = delete;

 private:
  std::vector<int> before_;
};

// Cores of a NUMA node, which the system lists as in "0-3,8". Empty: no such node, or another
// format.
std::vector<int> cores_of_node(int node,
                               const std::filesystem::path& nodes = "/sys/devices/system/node");
std::vector<int> parse_cores(std::string_view list);

// Restricts the calling thread, and threads it starts from now on, to its usable cores of a NUMA
// node. Without such cores, nothing changes.
void stay_on_node(int node);

// Makes sleeps of the calling thread, and of threads it starts from now on, end on time. Linux
// otherwise rounds each sleep up by 50 microseconds to save wake-ups, which is more than a link's
// latency.
void wake_promptly();

// Makes the calling thread, and threads it starts from now on, run only while no other thread wants
// the core. For compute threads on cores that only ranks of one run use: communicating and issuing
// threads then always go first. On cores shared with other programs the thread would starve.
void give_way();

}  // namespace weft::base
