#include "weft/trace/step_parts.h"

#include <map>
#include <set>
#include <string_view>

#include "weft/trace/exposure/intervals.h"

namespace weft::trace {
namespace {

// Times of one rank in one run.
struct Times {
  Intervals layers;   // whole nodes with their waits; without host nodes, which only wait
  Intervals apart;    // operations: a node that waits for a layer does no work yet
  Intervals compute;  // operations of `apart` on the compute lane
};

}  // namespace

StepParts step_parts(std::span<const Timeline> timelines) {
  StepParts sums;
  double steps = 0;
  for (const Timeline& timeline : timelines) {
    std::set<std::string_view> of_layers;
    for (const Span& span : timeline.spans) {
      if (is_node(span) && span.layer >= 0) of_layers.insert(span.node);
    }
    std::map<int, Times> runs;
    for (const Span& span : timeline.spans) {
      Times& times = runs[span.run];
      const Interval time{span.begin_ns, span.end_ns};
      const bool of_layer = of_layers.contains(span.node);
      if (is_node(span) && of_layer && span.lane != kHostLane) times.layers.push_back(time);
      if (is_node(span) || of_layer) continue;
      times.apart.push_back(time);
      if (span.lane == kComputeLane) times.compute.push_back(time);
    }
    for (auto& [run, times] : runs) {
      const Intervals apart = unite(std::move(times.apart)),
                      layers = unite(std::move(times.layers));
      sums.apart_ms += static_cast<double>(length(subtract(apart, layers))) / 1e6;
      sums.compute_apart_ms += static_cast<double>(length(unite(std::move(times.compute)))) / 1e6;
      ++steps;
    }
  }
  if (steps == 0) return {};
  return {.apart_ms = sums.apart_ms / steps, .compute_apart_ms = sums.compute_apart_ms / steps};
}

}  // namespace weft::trace
