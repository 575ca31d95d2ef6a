// A timeline of a step that shows fewer micro-batches than the step has: the order of a step
// repeats after its warm-up, so that one part of the timeline stands for those that are not there.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "weft/trace/intervals.h"
#include "weft/trace/span.h"

namespace weft::trace {

struct Shortened {
  std::int64_t micro_batches = 0;  // of a rank in the step; 0: nobody said
  std::int64_t shown = 0;          // of them
  Interval steady = {};            // on the clock of the timelines
  std::int64_t repeated = 0;       // how often the step has that part besides; 0: all is shown

  bool is_short() const { return repeated > 0; }
  std::int64_t hidden_ns() const { return repeated * (steady.end - steady.begin); }
};

// From the first span to the last.
Interval shown_time(std::span<const Timeline> timelines);

// What is wrong with it, of timelines of a step that takes `step_ms` as a whole; empty: nothing.
std::string complaint_about(const Shortened& shortened,
                            std::span<const Timeline> timelines,
                            double step_ms);

}  // namespace weft::trace
