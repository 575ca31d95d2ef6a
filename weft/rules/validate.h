// Is the run legal, and does this build run it? Two verdicts, kept apart.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "weft/config/config.h"
#include "weft/rules/judged_config.h"
#include "weft/rules/missing.h"
#include "weft/rules/rule.h"

namespace weft::rules {

struct Verdict {
  config::Config config;  // with what was set automatically: to look at, whether it runs or not
  std::vector<config::Finding> errors, warnings, automatic;
  std::vector<Missing> missing;  // judged only where legal
  // The same config as what an engine takes; judge() gives it exactly where the run is legal and
  // nothing is missing.
  std::optional<JudgedConfig> judged;

  bool legal() const { return errors.empty(); }
  bool runs() const { return legal() && missing.empty(); }
};

// Judges a config by every rule. Never throws for what the user wrote.
Verdict judge(const config::Config& config);

// The same, but ConfigError with every error and every missing part, where there are any: `judged`
// is there.
Verdict validate(const config::Config& config);

// For those who only look at the schedule: the run may be larger than any process and have parts
// that are missing, which the schedule then leaves out. ConfigError where the rules refuse it.
// Nothing that runs: `judged` is not there.
Verdict validate_schedule(const config::Config& config);

}  // namespace weft::rules
