// Facts about a run: command, hardware, and cores per rank.
#pragma once

#include <string>
#include <vector>

#include "weft/report/evidence.h"

namespace weft::report {

// Facts from a settled config and the starts in the run folder.
std::vector<Fact> about_run(const config::Config& run, const Evidence& evidence);

// Warning for ranks of one machine with fewer cores than threads. Empty: enough cores, or unknown.
std::string crowding_of(const config::Config& run, const std::vector<Start>& starts);

}  // namespace weft::report
