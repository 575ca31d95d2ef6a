#include "weft/report/evidence.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/text.h"
#include "weft/report/metrics_file.h"
#include "weft/words/recipe.h"

namespace weft::report {
namespace {

namespace fs = std::filesystem;
using base::text;

constexpr std::size_t kLargestConfig = 4u << 20;
constexpr std::size_t kMostTraces = 4096;

void take_trace(const fs::path& file, Evidence& evidence) {
  trace::ChromeTrace trace = trace::read_chrome(file);
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

// A trace that is cut or damaged takes nothing else of the run's report with it.
void take_readable_trace(const fs::path& file, Evidence& evidence) {
  try {
    take_trace(file, evidence);
  } catch (const base::ConfigError& error) {
    evidence.notes.push_back(text("left out: {}", error.what()));
  }
}

// trace.json of all ranks, or a file a rank where their clocks do not compare.
void take_traces(const fs::path& folder, Evidence& evidence) {
  if (fs::is_regular_file(folder / "trace.json")) {
    return take_readable_trace(folder / "trace.json", evidence);
  }
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    const bool is_trace = name.starts_with("trace.rank") && name.ends_with(".json");
    if (is_trace && files.size() < kMostTraces) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  for (const fs::path& file : files) take_readable_trace(file, evidence);
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
  if (metrics.unread > 0) {
    evidence.notes.push_back(
        text("metrics.jsonl: {} could not be read", base::counted(metrics.unread, "line")));
  }
}

Evidence read_folder(const fs::path& folder, Evidence evidence) {
  const fs::path config = folder / "config.yaml";
  if (!fs::is_regular_file(config)) {
    throw base::ConfigError(
        text("'{}' is no run folder: it has no config.yaml; weft train makes one, and a trace is "
             "named by its file",
             base::shown(folder.string())));
  }
  evidence.kind = "run";
  evidence.config = words::parse_config(base::read_text(config, kLargestConfig), config.string());
  take_metrics(folder / "metrics.jsonl", evidence);
  take_traces(folder, evidence);
  return evidence;
}

}  // namespace

Evidence read_evidence(const fs::path& path) {
  Evidence evidence{.name = path.string(), .kind = {}, .config = {}, .steps = {}};
  if (fs::is_directory(path)) return read_folder(path, std::move(evidence));
  if (!fs::exists(path)) {
    throw base::MissingInput(text("no run folder or trace '{}'", base::shown(path.string())));
  }
  take_trace(path, evidence);
  evidence.kind = evidence.devices ? "trace of a profiler" : "trace of Weft";
  if (evidence.origin == Evidence::Origin::Simulated) evidence.kind = "simulated trace of Weft";
  return evidence;
}

}  // namespace weft::report
