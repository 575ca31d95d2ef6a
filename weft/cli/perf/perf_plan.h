// What `weft perf` is going to run: every config judged, and whether twins stand in for the model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weft/config/config.h"
#include "weft/plan/tuning/perf_vary.h"
#include "weft/plan/tuning/twin.h"
#include "weft/rules/parallel/overlap_modes.h"
#include "weft/rules/validate.h"

namespace weft::cli {

struct Candidate {
  std::string value;                  // of the varied knob
  config::Config asked;               // as resolved, with what the rules set
  rules::JudgedConfig config;         // what runs
  std::vector<plan::Change> changes;  // from what was asked to what runs, less the rules' own
  std::vector<config::Finding> warnings, automatic;  // what the rules say of `config`
  std::vector<rules::OverlapMode> overlaps;  // with the reasons of the one judgement there was
};

struct PerfPlan {
  std::vector<Candidate> candidates;
  std::vector<std::string> varied;     // keys
  std::vector<std::string> following;  // other keys in which the runs differ, as rules set them
  std::string twin_reason;             // why twins run instead of the model; empty: the model runs
  std::int64_t steps = 0;              // timed, of each run

  bool is_twin() const { return !twin_reason.empty(); }
};

// Where twins run: when the model is for GPUs or does not fit into this machine, or always.
enum class TwinUse { WhenNeeded, Always };

struct PlanRequest {
  config::Config config;  // not judged
  std::vector<plan::Knob> knobs;
  plan::Sweep sweep = plan::Sweep::OneKnob;
  std::int64_t steps = 0;
  TwinUse twin = TwinUse::WhenNeeded;
};

// ConfigError with everything that is refused, of all values, before anything runs.
PerfPlan plan_perf(const PlanRequest& request);

}  // namespace weft::cli
