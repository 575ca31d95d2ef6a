#include "weft/report/evidence.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/files/file.h"
#include "weft/base/text.h"
#include "weft/report/metrics_file.h"
#include "weft/words/recipe.h"

namespace weft::report {
namespace {

namespace fs = std::filesystem;
using base::text;

constexpr std::size_t kLargestConfig = 4u << 20;
constexpr std::size_t kMostTraces = 4096;

void take_trace(const fs::path& file, const FileWatch& watch, Evidence& evidence) {
  const auto of_file = [&](std::uint64_t read, std::uint64_t all) {
    if (watch) watch(file.filename().string(), read, all);
  };
  trace::ChromeTrace trace = trace::read_chrome(file, of_file);
  for (trace::Timeline& timeline : trace.timelines) {
    evidence.timelines.push_back(std::move(timeline));
  }
  if (trace.devices) evidence.devices = std::move(trace.devices);
  if (trace.simulated_config) evidence.shortened = trace.shortened;
  if (trace.simulated_config && !evidence.config) {
    evidence.origin = Evidence::Origin::Simulated;
    evidence.config = words::parse_config(*trace.simulated_config, file.string());
    evidence.notes.push_back(
        "this step was simulated: no prediction stands beside it. Gains are of its own nodes in "
        "another order; what else changes with a layout, weft plan prices");
  }
  for (std::string& note : trace.notes) {
    evidence.notes.push_back(text("{}: {}", file.filename().string(), note));
  }
}

// A damaged trace does not affect the rest of the report.
void take_readable_trace(const fs::path& file, const FileWatch& watch, Evidence& evidence) {
  try {
    take_trace(file, watch, evidence);
  } catch (const base::ConfigError& error) {
    evidence.notes.push_back(text("left out: {}", error.what()));
  }
}

// Reads trace.json of all ranks, or one file per rank if their clocks are unsynchronized.
void take_traces(const fs::path& folder, const FileWatch& watch, Evidence& evidence) {
  for (const char* whole : {"trace.json", "trace.json.gz"}) {
    if (!fs::is_regular_file(folder / whole)) continue;
    return take_readable_trace(folder / whole, watch, evidence);
  }
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    const bool is_trace =
        name.starts_with("trace.rank") && (name.ends_with(".json") || name.ends_with(".json.gz"));
    if (is_trace && files.size() < kMostTraces) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  for (const fs::path& file : files) take_readable_trace(file, watch, evidence);
  evidence.clocks = trace::Clocks::Separate;
  std::ranges::sort(evidence.timelines, {}, &trace::Timeline::rank);
  if (files.empty()) {
    evidence.notes.push_back("there is no trace: where the time went is not known");
  }
}

void take_metrics(const fs::path& file, Evidence& evidence) {
  if (!fs::is_regular_file(file)) {
    evidence.notes.push_back("there is no metrics.jsonl");
    return;
  }
  MetricsFile metrics = read_metrics(file);
  evidence.steps = metrics.steps;
  evidence.loads = std::move(metrics.loads);
  evidence.learning = std::move(metrics.learning);
  if (metrics.unread > 0) {
    evidence.notes.push_back(
        text("metrics.jsonl: {} could not be read", base::counted(metrics.unread, "line")));
  }
}

constexpr std::size_t kMostLookedAt = 2000;  // entries of a folder
constexpr std::size_t kMostNamedRuns = 5;

bool is_run_folder(const fs::path& folder) {
  std::error_code error;
  return fs::is_regular_file(folder / "config.yaml", error);
}

std::vector<fs::path> folders_in(const fs::path& folder) {
  std::vector<fs::path> folders;
  std::size_t looked_at = 0;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (++looked_at > kMostLookedAt) break;
    std::error_code ignored;
    if (at->is_directory(ignored)) folders.push_back(at->path());
  }
  return folders;
}

// Suggestion for a folder that is no run.
std::string way_out(const fs::path& folder) {
  const std::vector<fs::path> runs = runs_in(folder);
  if (runs.empty()) return "weft train makes one, and a trace is named by its file";
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min(runs.size(), kMostNamedRuns); ++i) {
    names.push_back(base::shown(runs[i].lexically_normal().string()));
  }
  const std::size_t left = runs.size() - names.size();
  return text("runs in it, the newest first: {}{}",
              fmt::join(names, ", "),
              left > 0 ? text(" and {} more", left) : "");
}

Evidence read_folder(const fs::path& folder, const FileWatch& watch, Evidence evidence) {
  const fs::path config = folder / "config.yaml";
  if (!is_run_folder(folder)) {
    throw base::ConfigError(text("'{}' is no run folder: it has no config.yaml; {}",
                                 base::shown(folder.string()),
                                 way_out(folder)));
  }
  evidence.kind = "run";
  evidence.config = words::parse_config(base::read_text(config, kLargestConfig), config.string());
  take_metrics(folder / "metrics.jsonl", evidence);
  evidence.starts = read_starts(folder);
  take_traces(folder, watch, evidence);
  return evidence;
}

}  // namespace

std::vector<fs::path> runs_in(const fs::path& folder) {
  std::vector<std::pair<fs::file_time_type, fs::path>> runs;
  const auto take = [&](const fs::path& one) {
    std::error_code error;
    if (is_run_folder(one)) runs.emplace_back(fs::last_write_time(one / "config.yaml", error), one);
  };
  for (const fs::path& one : folders_in(folder)) {
    take(one);
    if (runs.size() > kMostLookedAt) break;
    for (const fs::path& below : folders_in(one)) take(below);
  }
  std::ranges::sort(runs, [](const auto& a, const auto& b) {
    return std::pair(b.first, a.second) < std::pair(a.first, b.second);
  });
  std::vector<fs::path> paths;
  for (auto& [time, path] : runs) paths.push_back(std::move(path));
  return paths;
}

Evidence read_evidence(const fs::path& path, const FileWatch& watch) {
  Evidence evidence{.name = path.string(), .kind = {}, .config = {}, .steps = {}};
  if (fs::is_directory(path)) return read_folder(path, watch, std::move(evidence));
  if (!fs::exists(path)) {
    throw base::MissingInput(text("no run folder or trace '{}'", base::shown(path.string())));
  }
  take_trace(path, watch, evidence);
  evidence.kind = evidence.devices ? "trace of a profiler" : "trace of Weft";
  if (evidence.origin == Evidence::Origin::Simulated) evidence.kind = "simulated trace of Weft";
  return evidence;
}

}  // namespace weft::report
