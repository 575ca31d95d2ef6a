// Loops over threads that are started for them: for long work outside of a step.
#pragma once

#include <cstdint>
#include <functional>

namespace weft::base {

// Calls body(i) for every i in [0, tasks) on at most `threads` threads, the caller's included, and
// returns when all are done. Which thread runs a task is not fixed. The first exception of a body
// is thrown here; tasks that nobody has begun by then are left out. Where the system refuses
// threads there are fewer.
void parallel(int threads, std::int64_t tasks, const std::function<void(std::int64_t)>& body);

}  // namespace weft::base
