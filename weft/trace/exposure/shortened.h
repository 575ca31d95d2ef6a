// Timeline of a step that shows fewer micro-batches than the step has. The order of a step repeats
// after its warm-up, so a steady part of the timeline represents the missing ones.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "weft/trace/exposure/intervals.h"
#include "weft/trace/span.h"

namespace weft::trace {

struct Shortened {
  std::int64_t micro_batches = 0;  // per rank and step; 0: unknown
  std::int64_t shown = 0;          // micro-batches shown
  Interval steady = {};            // the repeating part, on the clock of the timelines
  std::int64_t repeated = 0;       // further repetitions of that part; 0: all are shown

  bool is_short() const { return repeated > 0; }
  std::int64_t hidden_ns() const { return repeated * (steady.end - steady.begin); }
};

// Interval from the first span to the last.
Interval shown_time(std::span<const Timeline> timelines);

// Inconsistency with the timelines of a step that takes `step_ms` in full; empty: none.
std::string complaint_about(const Shortened& shortened,
                            std::span<const Timeline> timelines,
                            double step_ms);

}  // namespace weft::trace
