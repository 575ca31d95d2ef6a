// What there is to look at: the files of a run folder, or one trace.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "weft/config/config.h"
#include "weft/plan/calibration.h"
#include "weft/report/report.h"
#include "weft/report/starts.h"
#include "weft/trace/chrome_read.h"

namespace weft::report {

struct Evidence {
  std::string name;                      // the path, as it was asked for
  std::string kind;                      // as Report::kind
  std::optional<config::Config> config;  // of a run folder, or of a trace that was simulated
  std::optional<StepTimes> steps;
  std::vector<LayerLoad> loads;
  std::optional<Learning> learning = {};
  std::vector<Start> starts = {};
  std::vector<trace::Timeline> timelines;
  trace::Clocks clocks = trace::Clocks::Shared;
  trace::Shortened shortened = {};  // of a trace that was simulated
  std::optional<trace::DeviceTraces> devices;
  enum class Origin { Measured, Simulated } origin = Origin::Measured;
  std::vector<std::string> notes;
  std::optional<plan::Calibration> calibration = {};  // of the machine, where it is given
};

// How far a long read is, of the file of that name.
using FileWatch =
    std::function<void(const std::string& file, std::uint64_t read, std::uint64_t all)>;

// Of a run folder (config.yaml, metrics.jsonl, starts.jsonl, trace*.json, packed or not), or of a
// trace. MissingInput where the path is not there, ConfigError where it holds neither or is
// damaged.
Evidence read_evidence(const std::filesystem::path& path, const FileWatch& watch = nullptr);

// Run folders in `folder` and one folder below, the newest first.
std::vector<std::filesystem::path> runs_in(const std::filesystem::path& folder);

}  // namespace weft::report
