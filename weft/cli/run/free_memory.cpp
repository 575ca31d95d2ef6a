#include "weft/cli/run/free_memory.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

namespace weft::cli {
namespace {

namespace fs = std::filesystem;

// Number in a line such as "MemAvailable:  16 kB" or "inactive_file 4096".
std::optional<std::int64_t> number_of_line(const fs::path& path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    std::int64_t number = 0;
    if (words >> name && name == key && words >> number) return number;
  }
  return std::nullopt;
}

// Only number of a file; nullopt: "max".
std::optional<std::int64_t> number_in(const fs::path& path) {
  std::ifstream file(path);
  std::int64_t number = 0;
  if (file >> number) return number;
  return std::nullopt;
}

// File names of a control group version, and the prefix of its lines in memory.stat.
struct GroupFiles {
  const char *folder, *limit, *used, *prefix;
};
constexpr GroupFiles kFirst{"sys/fs/cgroup/memory",
                            "memory.limit_in_bytes",
                            "memory.usage_in_bytes",
                            "total_"};
constexpr GroupFiles kSecond{"sys/fs/cgroup", "memory.max", "memory.current", ""};

// Free memory of a control group. Cached files count as free: the system reclaims them before the
// group is out of memory.
std::optional<std::int64_t> left_in(const fs::path& group, const GroupFiles& files) {
  const std::optional<std::int64_t> limit = number_in(group / files.limit);
  const std::optional<std::int64_t> used = number_in(group / files.used);
  if (!limit || !used) return std::nullopt;
  std::int64_t left = *limit - *used;
  for (const char* kept : {"active_file", "inactive_file"}) {
    left += number_of_line(group / "memory.stat", std::string(files.prefix) + kept).value_or(0);
  }
  return std::max<std::int64_t>(0, left);
}

// Applies the limits of a group and its parents. The group's path is below the folder; in a
// container the folder itself is the group.
void keep_least(const fs::path& root,
                const GroupFiles& files,
                const fs::path& group,
                std::optional<std::int64_t>& least) {
  const fs::path folder = root / files.folder;
  for (fs::path at = group.relative_path();; at = at.parent_path()) {
    if (const auto left = left_in(folder / at, files)) {
      least = std::min(least.value_or(*left), *left);
    }
    if (at.empty()) return;
  }
}

}  // namespace

std::optional<std::int64_t> free_memory_bytes(const fs::path& root) {
  std::optional<std::int64_t> least = number_of_line(root / "proc/meminfo", "MemAvailable:");
  if (least) *least *= 1024;
  // "0::/user.slice/job" in version 2, "7:memory:/docker/ab12" in version 1.
  std::ifstream groups(root / "proc/self/cgroup");
  fs::path first, second;
  for (std::string line; std::getline(groups, line);) {
    const std::size_t one = line.find(':'), two = line.find(':', one + 1);
    if (one == std::string::npos || two == std::string::npos) continue;
    const std::string kinds = "," + line.substr(one + 1, two - one - 1) + ",";
    if (kinds == ",,") second = line.substr(two + 1);
    if (kinds.find(",memory,") != std::string::npos) first = line.substr(two + 1);
  }
  keep_least(root, kFirst, first, least);
  keep_least(root, kSecond, second, least);
  return least;
}

}  // namespace weft::cli
