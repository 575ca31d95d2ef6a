#include "weft/cli/run/machine.h"

#include <unistd.h>

#include <fstream>

#include "weft/base/parallel/cores.h"
#include "weft/base/text.h"

namespace weft::cli {
namespace {

// First "key : value" line of that key; empty: none.
std::string cpu_fact(std::string_view key) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos || base::trim(line.substr(0, colon)) != key) continue;
    return std::string(base::trim(std::string_view(line).substr(colon + 1)));
  }
  return {};
}

// ARM cores report numbers instead of a name.
std::string cpu_name() {
  const std::string name = cpu_fact("model name"), part = cpu_fact("CPU part");
  if (!name.empty()) return name;
  if (part.empty()) return "unknown";
  return base::text("ARM, implementer {}, part {}", cpu_fact("CPU implementer"), part);
}

}  // namespace

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
