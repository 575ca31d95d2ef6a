// Does the run make sense? Every rule is checked and every complaint names keys, numbers and the
// fix.
#pragma once

#include <string>
#include <vector>

#include "weft/config/config.h"

namespace weft::config {

// What no build could run: numbers out of range, or keys that contradict each other.
std::vector<std::string> rule_complaints(const Config& config);

// What is legal but not built yet.
std::vector<std::string> missing_parts(const Config& config);

// ConfigError with all of both, where there are any.
void validate(const Config& config);

// The same for those who only look at the schedule: the run may be far larger than any process.
void validate_schedule(const Config& config);

// What is legal and runs, but not as the user may think. The config has been validated.
std::vector<std::string> warnings_of(const Config& config);

}  // namespace weft::config
