#include "weft/cli/machine.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "weft/base/cores.h"
#include "weft/base/text.h"

namespace weft::cli {
namespace {

// The first "key : value" line of that key; empty where there is none.
std::string cpu_fact(std::string_view key) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos || base::trim(line.substr(0, colon)) != key) continue;
    return std::string(base::trim(std::string_view(line).substr(colon + 1)));
  }
  return {};
}

// ARM cores tell numbers instead of a name.
std::string cpu_name() {
  const std::string name = cpu_fact("model name"), part = cpu_fact("CPU part");
  if (!name.empty()) return name;
  if (part.empty()) return "unknown";
  return base::text("ARM, implementer {}, part {}", cpu_fact("CPU implementer"), part);
}

// The number of a line "MemAvailable:  16 kB" or "inactive_file 4096".
std::optional<std::int64_t> number_of_line(const char* path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    std::int64_t number = 0;
    if (words >> name && name == key && words >> number) return number;
  }
  return std::nullopt;
}

// The only number of a file; none where it says "max".
std::optional<std::int64_t> number_in(const char* path) {
  std::ifstream file(path);
  std::int64_t number = 0;
  if (file >> number) return number;
  return std::nullopt;
}

}  // namespace

std::optional<std::int64_t> free_memory_bytes() {
  std::optional<std::int64_t> free = number_of_line("/proc/meminfo", "MemAvailable:");
  if (free) *free *= 1024;
  const std::optional<std::int64_t> limit = number_in("/sys/fs/cgroup/memory.max");
  const std::optional<std::int64_t> used = number_in("/sys/fs/cgroup/memory.current");
  if (!limit || !used) return free;
  // Files that the system keeps in memory because nobody wants it.
  const std::int64_t kept =
      number_of_line("/sys/fs/cgroup/memory.stat", "inactive_file").value_or(0);
  const std::int64_t left = std::max<std::int64_t>(0, *limit - *used + kept);
  return std::min(free.value_or(left), left);
}

Machine this_machine() {
  return {
    .cpu = cpu_name(), .cores = static_cast<std::int64_t>(base::usable_cores().size()),
    .memory_bytes = std::int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGE_SIZE),
#if defined(__clang__)
    .compiler = base::text("clang {}", __clang_version__),
#else
    .compiler = base::text("g++ {}", __VERSION__),
#endif
    .build = WEFT_BUILD_TYPE, .version = WEFT_VERSION
  };
}

base::Json to_json(const Machine& machine) {
  return {{"cpu", machine.cpu},
          {"cores", machine.cores},
          {"memory_bytes", machine.memory_bytes},
          {"compiler", machine.compiler},
          {"build", machine.build},
          {"version", machine.version}};
}

std::string to_text(const Machine& machine) {
  return base::text("{}, {}, {}, {}, {} build, weft {}",
                    machine.cpu,
                    base::counted(machine.cores, "core"),
                    base::human_bytes(static_cast<double>(machine.memory_bytes)),
                    machine.compiler,
                    machine.build,
                    machine.version);
}

}  // namespace weft::cli
