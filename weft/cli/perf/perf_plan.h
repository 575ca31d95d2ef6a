// Plan of `weft perf`: every judged config, and twins in place of a large model.
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
  std::string value;           // value of the varied knob
  config::Config asked;        // as resolved, with keys set by the rules
  rules::JudgedConfig config;  // config that runs
  // From the requested to the running config, without the rules' own.
  std::vector<plan::Change> changes;
  std::vector<config::Finding> warnings, automatic;  // findings on `config`
  std::vector<rules::OverlapMode> overlaps;          // with the reasons of the judgement
};

struct PerfPlan {
  std::vector<Candidate> candidates;
  std::vector<std::string> varied;     // keys
  std::vector<std::string> following;  // other differing keys, set by rules
  std::string twin_reason;             // reason for twins; empty: the model runs
  std::int64_t steps = 0;              // timed steps of each run

  bool is_twin() const { return !twin_reason.empty(); }
};

// WhenNeeded: if the model is for GPUs or exceeds this machine.
enum class TwinUse { WhenNeeded, Always };

struct PlanRequest {
  config::Config config;  // not judged
  std::vector<plan::Knob> knobs;
  plan::Sweep sweep = plan::Sweep::OneKnob;
  std::int64_t steps = 0;
  TwinUse twin = TwinUse::WhenNeeded;
};

// ConfigError with every refusal over all values, before anything runs.
PerfPlan plan_perf(const PlanRequest& request);

}  // namespace weft::cli
