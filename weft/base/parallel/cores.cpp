#include "weft/base/parallel/cores.h"

#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "weft/base/error.h"
#include "weft/base/text.h"

namespace weft::base {
namespace {

// The kernel refuses sets smaller than its own, and may have more cores than a cpu_set_t holds.
constexpr int kMostCores = 1 << 16;

struct FreeSet {
  void operator()(cpu_set_t* set) const { CPU_FREE(set); }
};
using CoreSet = std::unique_ptr<cpu_set_t, FreeSet>;
const std::size_t kSetBytes = CPU_ALLOC_SIZE(kMostCores);

CoreSet empty_set() {
  CoreSet set(CPU_ALLOC(kMostCores));
  if (set) CPU_ZERO_S(kSetBytes, set.get());
  return set;
}

// False, with errno set, if the system refuses.
bool allow(const std::vector<int>& cores) {
  const CoreSet set = empty_set();
  if (!set) return false;
  for (const int core : cores) CPU_SET_S(static_cast<std::size_t>(core), kSetBytes, set.get());
  return sched_setaffinity(0, kSetBytes, set.get()) == 0;
}

}  // namespace

std::vector<int> usable_cores() {
  const CoreSet set = empty_set();
  if (!set || sched_getaffinity(0, kSetBytes, set.get()) != 0) throw_errno("sched_getaffinity");
  std::vector<int> cores;
  for (int core = 0; core < kMostCores; ++core) {
    if (CPU_ISSET_S(static_cast<std::size_t>(core), kSetBytes, set.get())) cores.push_back(core);
  }
  if (cores.empty()) throw SystemError("sched_getaffinity: no core is allowed");
  return cores;
}

int online_cores() { return static_cast<int>(std::max(1l, sysconf(_SC_NPROCESSORS_ONLN))); }

StayOnCore::StayOnCore(int core) : before_(usable_cores()) {
  if (!allow({core})) throw_errno(text("sched_setaffinity to core {}", core));
}

// If refused, the thread stays where it is; the run need not end.
StayOnCore::~StayOnCore() { allow(before_); }

std::vector<int> parse_cores(std::string_view list) {
  std::vector<int> cores;
  while (!list.empty() && list.back() == '\n') list.remove_suffix(1);
  const char* at = list.data();
  const char* const end = at + list.size();
  while (at != end) {
    int first = 0;
    auto [rest, error] = std::from_chars(at, end, first);
    int last = first;
    if (error == std::errc{} && rest != end && *rest == '-') {
      const std::from_chars_result second = std::from_chars(rest + 1, end, last);
      rest = second.ptr;
      error = second.ec;
    }
    const bool in_range = error == std::errc{} && 0 <= first && first <= last && last < kMostCores;
    if (!in_range || (rest != end && (*rest != ',' || rest + 1 == end))) return {};
    for (int core = first; core <= last; ++core) cores.push_back(core);
    at = rest == end ? end : rest + 1;
  }
  return cores;
}

std::vector<int> cores_of_node(int node, const std::filesystem::path& nodes) {
  if (node < 0) return {};
  std::ifstream file(nodes / text("node{}", node) / "cpulist");
  std::string line;
  std::getline(file, line);
  return parse_cores(line);
}

void stay_on_node(int node) {
  const std::vector<int> usable = usable_cores(), near = cores_of_node(node);
  std::vector<int> both;
  std::ranges::set_intersection(usable, near, std::back_inserter(both));
  if (!both.empty()) allow(both);  // if refused, the thread runs anywhere
}

void wake_promptly() {
  // In nanoseconds. If refused, sleeps only end later.
  prctl(PR_SET_TIMERSLACK, 1ul, 0ul, 0ul, 0ul);
}

void give_way() {
  const sched_param parameters{};
  sched_setscheduler(0, SCHED_IDLE, &parameters);  // if refused, other threads only run later
}

}  // namespace weft::base
