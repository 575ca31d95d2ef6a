#include "weft/train/log/run_folder.h"

#include <fmt/chrono.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <span>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/files/file.h"
#include "weft/base/json.h"
#include "weft/base/text.h"
#include "weft/config/dump.h"
#include "weft/config/field.h"

namespace weft::train {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMetrics = "metrics.jsonl";
constexpr const char* kConfig = "config.yaml";

bool is_of_a_trace(const std::string& name) {
  return name == "exposure.json" || (name.starts_with("trace.") && name.ends_with(".json"));
}

// Removes traces of an earlier run from a reused folder.
void remove_old_traces(const fs::path& folder) {
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const bool old = is_of_a_trace(entry.path().filename().string());
    if (old && !entry.is_directory()) fs::remove(entry.path());
  }
}

// First file of the folder that a new run would overwrite; empty: none. A run that failed before
// its first step leaves a config and empty metrics, which may be overwritten.
std::string file_to_lose(const fs::path& folder) {
  std::error_code error;
  const fs::path metrics = folder / kMetrics;
  if (fs::is_regular_file(metrics, error) && fs::file_size(metrics, error) > 0) return kMetrics;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::error_code ignored;
    if (!fs::is_regular_file(at->path(), ignored)) continue;
    const std::string name = at->path().filename().string();
    if (is_of_a_trace(name) || name.ends_with(".safetensors")) return name;
    if (name == kConfig && !fs::exists(metrics, ignored)) return name;
  }
  return "";
}

// True if the config in runtime.run_dir saves to `folder`.
bool run_folder_saves_to(const config::Config& config, const std::string& folder) {
  config::Config wanted = config;
  wanted.checkpoint.save = folder;
  std::ifstream file(fs::path(config.runtime.run_dir) / kConfig);
  const std::string begin = "  save: ";
  const std::string line_of_folder =
      begin + config::value_text(*config::find_field("checkpoint.save"), wanted);
  for (std::string line; std::getline(file, line);) {
    if (line == line_of_folder) return true;
    const bool names = line.starts_with(begin) && !folder.empty();
    if (names && base::is_same_path(line.substr(begin.size()), folder)) return true;
  }
  return false;
}

// True if the same job started in this folder before: one folder is both checkpoint.load and
// checkpoint.save, and the config there saves to it.
bool is_restart_of_same_job(const config::Config& config) {
  const config::CheckpointConfig& checkpoint = config.checkpoint;
  if (checkpoint.save.empty() || checkpoint.load.empty()) return false;
  return base::is_same_path(checkpoint.load, checkpoint.save) &&
         run_folder_saves_to(config, checkpoint.save);
}

// True if the run of this folder saved the checkpoint to resume from: checkpoint.load names its
// checkpoint folder or one checkpoint.
bool resumes_own_run(const config::Config& config) {
  const fs::path load = config.checkpoint.load;
  return run_folder_saves_to(config, load.string()) ||
         run_folder_saves_to(
             config,
             (load.has_filename() ? load : load.parent_path()).parent_path().string());
}

void write_end(const fs::path& file, std::uint64_t begin, const fs::path& to) {
  const base::InputFile all(file);
  base::write_whole(to, [&](const base::Append& append) {
    std::vector<char> piece(1u << 20);
    for (std::uint64_t at = begin; at < all.size();) {
      const std::size_t size = std::min<std::uint64_t>(piece.size(), all.size() - at);
      all.read(at, std::as_writable_bytes(std::span(piece.data(), size)));
      append({piece.data(), size});
      at += size;
    }
  });
}

// Writes what metrics.jsonl has behind its first `begin` bytes to a file of its own.
std::optional<fs::path> keep_metrics(const fs::path& folder, std::uint64_t begin) {
  std::error_code error;
  const fs::path metrics = folder / kMetrics;
  if (!fs::is_regular_file(metrics, error) || fs::file_size(metrics) <= begin) return std::nullopt;
  for (int i = 1;; ++i) {
    fs::path kept = folder / base::text("metrics.{}.jsonl", i);
    if (fs::exists(fs::symlink_status(kept, error))) continue;
    write_end(metrics, begin, kept);
    return kept;
  }
}

// Stays open during the run: a second run in the folder fails before it overwrites anything.
base::LineFile open_metrics(const fs::path& folder) {
  return base::LineFile(
      folder / kMetrics,
      base::text("'{}' is in use by another run: wait for its end, or set another runtime.run_dir",
                 folder.string()));
}

// Length of the part of metrics.jsonl for the first `steps` steps: one line per step, in order.
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

// Checks files that are written after the last step.
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
  // Makes the new folder survive a power cut, like its files.
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

std::optional<fs::path> drop_later_steps(RunFolder& folder, std::int64_t step) {
  const std::uint64_t bytes = bytes_of_steps(folder.path / kMetrics, step);
  std::optional<fs::path> kept = keep_metrics(folder.path, bytes);
  folder.metrics.cut(bytes);
  return kept;
}

std::string run_folder_complaint(const config::Config& config, std::int64_t step) {
  const fs::path folder = config.runtime.run_dir;
  if (folder.empty() || is_restart_of_same_job(config)) return "";
  if (step > 0 && resumes_own_run(config)) return "";
  const std::string file = file_to_lose(folder);
  if (file.empty()) return "";
  return base::text(
      "runtime.run_dir: '{}' has {} of another run or a model: name another folder, go on from a "
      "checkpoint "
      "of "
      "that run (checkpoint.load), or give --overwrite to replace it",
      folder.string(),
      file);
}

RunFolder make_run_folder(const config::Config& config,
                          const std::string& name,
                          std::int64_t step,
                          base::Overwrite overwrite) {
  fs::path folder = config.runtime.run_dir;
  if (folder.empty()) {
    folder = make_fresh_folder("runs", name);
  } else {
    make_writable_folder(folder, "runtime.run_dir");
  }
  const bool replaces = overwrite == base::Overwrite::Yes;
  const std::string complaint = replaces ? "" : run_folder_complaint(config, step);
  if (!complaint.empty() && !fs::exists(folder / kMetrics)) throw base::ConfigError(complaint);
  base::LineFile metrics = open_metrics(folder);  // fails first if another run uses the folder
  if (!complaint.empty()) throw base::ConfigError(complaint);
  require_late_files(folder, config);
  if (replaces || config.runtime.trace) remove_old_traces(folder);
  base::write_whole(folder / kConfig, config::to_yaml(config));
  RunFolder made{.path = std::move(folder), .metrics = std::move(metrics)};
  if (step == 0 && replaces) {
    made.metrics.clear();
  } else {
    made.kept = drop_later_steps(made, step);
  }
  return made;
}

}  // namespace weft::train
