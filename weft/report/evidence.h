// Evidence for a report: the files of a run folder, or one trace.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "weft/config/config.h"
#include "weft/plan/hardware/calibration.h"
#include "weft/report/report.h"
#include "weft/report/starts.h"
#include "weft/trace/chrome/chrome_read.h"

namespace weft::report {

struct Evidence {
  std::string name;                      // path as given by the user
  std::string kind;                      // see Report::kind
  std::optional<config::Config> config;  // from a run folder or a simulated trace
  std::optional<StepTimes> steps;
  std::vector<LayerLoad> loads;
  std::optional<Learning> learning = {};
  std::vector<Start> starts = {};
  std::vector<trace::Timeline> timelines;
  trace::Clocks clocks = trace::Clocks::Shared;
  trace::Shortened shortened = {};  // for a simulated trace
  std::optional<trace::DeviceTraces> devices;
  enum class Origin { Measured, Simulated } origin = Origin::Measured;
  std::vector<std::string> notes;
  std::optional<plan::Calibration> calibration = {};  // for the machine, if given
};

// Progress of a long read of one file.
using FileWatch =
    std::function<void(const std::string& file, std::uint64_t read, std::uint64_t all)>;

// Reads a run folder (config.yaml, metrics.jsonl, starts.jsonl, trace*.json, compressed or not) or
// a trace. MissingInput: no such path. ConfigError: neither a run nor a trace, or damaged.
Evidence read_evidence(const std::filesystem::path& path, const FileWatch& watch = nullptr);

// Run folders in `folder` and its subfolders, newest first.
std::vector<std::filesystem::path> runs_in(const std::filesystem::path& folder);

}  // namespace weft::report
