// Session of the harness: a config and the requested work, from any spelling of the words.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "weft/cli/arguments.h"
#include "weft/cli/perf/perf_against.h"
#include "weft/cli/perf/perf_report.h"
#include "weft/cli/run/startup.h"

namespace weft::cli {

enum class PerfMode { Measure, DryRun };

struct PerfSession {
  std::string name;       // recipe; may be empty
  config::Config config;  // from the words, not judged
  std::vector<plan::Knob> knobs;
  plan::Sweep sweep = plan::Sweep::OneKnob;
  TwinUse twin = TwinUse::WhenNeeded;
  std::optional<std::int64_t> steps;  // nullopt: train.train_iters, at most kDefaultSteps
  measure::WindowOptions window;
  std::optional<std::filesystem::path> against;
  Thresholds thresholds;
  std::optional<std::filesystem::path> out;          // nullopt: perf/<name>-<time>
  std::optional<std::filesystem::path> save_config;  // file for the running config
  base::Overwrite overwrite = base::Overwrite::No;   // applies to save_config
  PerfMode mode = PerfMode::Measure;
  Opening opening = Opening::Short;  // Full: with automatic settings, and parts without overlap
  Format format = Format::Text;
};

// Limit for benchmarks of recipes that train for long.
inline constexpr std::int64_t kDefaultSteps = 50;

// Runs the session and prints its results; returns the exit code. ConfigError before anything runs.
int run_session(const PerfSession& session);

}  // namespace weft::cli
