// The harness behind the words: a config and what to do with it, however they were asked for.
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
  std::string name;       // of the recipe; may be empty
  config::Config config;  // as the words ask for it, not judged
  std::vector<plan::Knob> knobs;
  plan::Sweep sweep = plan::Sweep::OneKnob;
  TwinUse twin = TwinUse::WhenNeeded;
  std::optional<std::int64_t> steps;  // none: train.train_iters, but at most kDefaultSteps
  measure::WindowOptions window;
  std::optional<std::filesystem::path> against;
  Thresholds thresholds;
  std::optional<std::filesystem::path> out;          // none: perf/<name>-<time>
  std::optional<std::filesystem::path> save_config;  // file for the config that runs
  base::Overwrite overwrite = base::Overwrite::No;   // that file
  PerfMode mode = PerfMode::Measure;
  Opening opening = Opening::Short;  // Full: with what was set automatically, and does not overlap
  Format format = Format::Text;
};

// Where a recipe means to train for long, a benchmark need not.
inline constexpr std::int64_t kDefaultSteps = 50;

// Runs it and prints what it found; gives the exit code. ConfigError before anything runs.
int run_session(const PerfSession& session);

}  // namespace weft::cli
