#include "weft/cli/perf/perf_folder.h"

#include <unistd.h>

#include <vector>

#include "weft/base/error.h"
#include "weft/base/files/folder_path.h"
#include "weft/base/text.h"
#include "weft/config/field.h"

namespace weft::cli {
namespace {

namespace fs = std::filesystem;
using base::text;

constexpr const char* kMend = "give another folder with --out";

[[noreturn]] void refuse(const fs::path& folder, const std::string& why) {
  throw base::ConfigError(text("--out '{}': {}: {}", config::shown(folder.string()), why, kMend));
}

[[noreturn]] void fail(const fs::path& folder, const std::string& why) {
  throw base::SystemError(text("--out '{}': {}: {}", config::shown(folder.string()), why, kMend));
}

// Missing parent folders, outermost first.
std::vector<fs::path> absent_folders(const fs::path& folder) {
  std::vector<fs::path> absent;
  std::error_code error;
  for (fs::path path = fs::absolute(folder).lexically_normal(); !fs::exists(path, error);
       path = path.parent_path()) {
    if (path == path.parent_path()) break;
    absent.insert(absent.begin(), path);
  }
  return absent;
}

// Makes the folder and removes it again: permissions do not tell, as in /proc.
void require_possible(const fs::path& folder) {
  const std::vector<fs::path> absent = absent_folders(folder);
  std::error_code error, ignored;
  fs::create_directories(folder, error);
  const bool is_folder = fs::is_directory(folder, ignored);
  const bool writable = is_folder && ::access(folder.c_str(), W_OK | X_OK) == 0;
  for (auto made = absent.rbegin(); made != absent.rend(); ++made) fs::remove(*made, ignored);
  if (!is_folder) {
    fail(folder, error ? text("cannot be made ({})", error.message()) : "is no folder");
  }
  if (!writable) fail(folder, "cannot be written into");
}

bool holds(const fs::path& folder, const fs::path& file) {
  std::error_code error;
  return fs::equivalent(folder, file.has_parent_path() ? file.parent_path() : ".", error);
}

}  // namespace

void require_result_folder(const std::optional<fs::path>& out,
                           const std::optional<fs::path>& against) {
  const fs::path folder = out.value_or(kPerfFolder);
  const std::string obstacle = base::folder_obstacle(folder);
  if (!obstacle.empty()) throw base::ConfigError(text("--out: {}", obstacle));
  if (out && against && holds(folder, *against)) {
    refuse(folder, text("holds '{}', the file to compare with", config::shown(against->string())));
  }
  std::error_code error;
  for (const char* name :
       {"result.json", "result.md", "run1", "recipe.yaml", "asked.yaml", "costs.json"}) {
    if (out && fs::exists(folder / name, error)) {
      refuse(folder, text("has a {} of an earlier run", name));
    }
  }
  require_possible(folder);
}

}  // namespace weft::cli
