#include "weft/train/run_folder.h"

#include <fmt/chrono.h>
#include <unistd.h>

#include <ctime>
#include <fstream>

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/json.h"
#include "weft/base/text.h"
#include "weft/config/dump.h"

namespace weft::train {
namespace {

namespace fs = std::filesystem;

// What an earlier run left in a folder that is used again.
void remove_old_files(const fs::path& folder) {
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    const bool old =
        name == "exposure.json" || (name.starts_with("trace.") && name.ends_with(".json"));
    if (old && !entry.is_directory()) fs::remove(entry.path());
  }
}

// Lasts as long as the run: who starts a second run in the folder learns it before anything is
// lost.
base::LineFile open_metrics(const fs::path& folder) {
  return base::LineFile(
      folder / "metrics.jsonl",
      base::text("'{}' is in use by another run: wait for its end, or set another runtime.run_dir",
                 folder.string()));
}

// How much of metrics.jsonl is about the first `steps` steps: each has one line, in their order.
std::uint64_t bytes_of_steps(const fs::path& metrics, std::int64_t steps) {
  std::uint64_t bytes = 0;
  if (steps == 0 || !fs::is_regular_file(metrics)) return bytes;
  std::ifstream file(metrics);
  std::int64_t last = 0;
  for (std::string line; std::getline(file, line) && !file.eof();) {
    const base::SortedJson json = base::try_parse_sorted_json(line);
    const auto found = json.is_object() ? json.find("iteration") : json.end();
    if (found == json.end() || !found->is_number_integer()) break;
    const auto step = found->get<std::int64_t>();
    if (step <= last || step > steps) break;
    last = step;
    bytes += line.size() + 1;
  }
  return bytes;
}

// What is written after the last step.
void require_late_files(const fs::path& folder, const config::Config& config) {
  if (!config.runtime.trace) return;
  for (const char* name : {"trace.json", "exposure.json"}) base::require_writable(folder / name);
}

}  // namespace

void make_writable_folder(const fs::path& folder, const std::string& what) {
  std::error_code error;
  const bool is_new = fs::create_directories(folder, error);
  if (error || !fs::is_directory(folder)) {
    throw base::SystemError(
        base::text("{}: cannot make '{}': {}", what, folder.string(), error.message()));
  }
  if (::access(folder.c_str(), W_OK) != 0) {
    base::throw_errno(base::text("{}: cannot write into '{}'", what, folder.string()));
  }
  // After a power cut it is there as its files are.
  if (is_new) base::sync_folder(fs::absolute(folder).parent_path());
}

fs::path make_fresh_folder(const fs::path& parent, const std::string& name) {
  const std::string stem = base::text("{}-{:%Y%m%d-%H%M%S}",
                                      name.empty() ? "run" : name,
                                      fmt::localtime(std::time(nullptr)));
  make_writable_folder(parent, "the folder of runs");
  for (int i = 1; i < 1000; ++i) {
    const fs::path folder = parent / (i == 1 ? stem : base::text("{}-{}", stem, i));
    std::error_code error;
    if (fs::create_directory(folder, error)) return folder;
    if (error)
      throw base::SystemError(base::text("cannot make '{}': {}", folder.string(), error.message()));
  }
  throw base::SystemError(base::text("too many runs named '{}' in this second", stem));
}

void drop_later_steps(RunFolder& folder, std::int64_t step) {
  folder.metrics.cut(bytes_of_steps(folder.path / "metrics.jsonl", step));
}

RunFolder make_run_folder(const config::Config& config,
                          const std::string& name,
                          std::int64_t step) {
  fs::path folder = config.runtime.run_dir;
  if (folder.empty()) {
    folder = make_fresh_folder("runs", name);
  } else {
    make_writable_folder(folder, "runtime.run_dir");
  }
  base::LineFile metrics = open_metrics(folder);
  require_late_files(folder, config);
  remove_old_files(folder);
  base::write_whole(folder / "config.yaml", config::to_yaml(config));
  RunFolder made{.path = std::move(folder), .metrics = std::move(metrics)};
  drop_later_steps(made, step);
  return made;
}

}  // namespace weft::train
