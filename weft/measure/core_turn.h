// How long threads that compute keep a core from each other.
#pragma once

namespace weft::measure {

// Two threads that want one core, in the class of compute that gives way (base::give_way): the mean
// time for which one keeps it. Takes a tenth of a second. 0: no turn was seen.
double core_turn_seconds();

}  // namespace weft::measure
