// Parallel loops on threads started for the call: for long work outside a step.
#pragma once

#include <cstdint>
#include <functional>

namespace weft::base {

// Calls body(i) for every i in [0, tasks) and returns when all are done. At most `threads` threads
// run, including the caller's. Any thread may run any i. The first exception of a body is thrown
// here; tasks that have not begun are dropped. If the system refuses threads, fewer are used.
void parallel(int threads, std::int64_t tasks, const std::function<void(std::int64_t)>& body);

}  // namespace weft::base
