// What ran, on what, and whether its ranks had cores of their own.
#pragma once

#include <string>
#include <vector>

#include "weft/report/evidence.h"

namespace weft::report {

// Of a run's config as the rules left it, and of the starts in its folder.
std::vector<Fact> about_run(const config::Config& run, const Evidence& evidence);

// What follows where ranks of one machine have fewer cores than they have threads; empty: they do
// not, or the folder does not say how many cores there were.
std::string crowding_of(const config::Config& run, const std::vector<Start>& starts);

}  // namespace weft::report
