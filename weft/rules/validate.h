// Is the run legal, and does this build run it? Two separate verdicts.
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
  config::Config config;  // with automatic settings; for reading only, whether it runs or not
  std::vector<config::Finding> errors, warnings, automatic;
  std::vector<Missing> missing;  // judged only if legal
  // Config for the engine; set exactly if the run is legal and no part is missing.
  std::optional<JudgedConfig> judged;

  bool legal() const { return errors.empty(); }
  bool runs() const { return legal() && missing.empty(); }
};

// Judges a config by every rule. Never throws because of user input.
Verdict judge(const config::Config& config);

// As judge(), but throws ConfigError with all errors and missing parts. `judged` is set on return.
Verdict validate(const config::Config& config);

// For commands that only read the schedule. The run may be too large for a process, and the
// schedule leaves missing parts out. Throws ConfigError if the rules refuse the config. `judged` is
// never set.
Verdict validate_schedule(const config::Config& config);

}  // namespace weft::rules
