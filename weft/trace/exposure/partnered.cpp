#include "weft/trace/exposure/partnered.h"

#include "weft/trace/compute_lane.h"
#include "weft/trace/exposure/intervals.h"

namespace weft::trace {

Partnered partnered(std::span<const Timeline> timelines) {
  double all = 0, exposed = 0, without_gemm = 0, steps = 0;
  for (const Timeline& timeline : timelines) {
    for (const auto& [run, spans] : spans_by_run(timeline)) {
      Intervals times;
      for (const Span* span : spans) {
        if (!is_node(*span) || !span->coverable || span->layer < 0) continue;
        if (communication_kind(span->lane).empty()) continue;
        times.push_back({span->begin_ns, span->end_ns});
      }
      const ComputeLane compute(spans);
      const Intervals communication = unite(std::move(times));
      all += static_cast<double>(length(communication));
      exposed += static_cast<double>(length(subtract(communication, compute.busy())));
      without_gemm += static_cast<double>(length(subtract(communication, compute.gemm())));
      ++steps;
    }
  }
  if (all == 0) return {};
  return {.communication_ms = all / steps / 1e6,
          .hidden_any = 1 - exposed / all,
          .hidden_gemm = 1 - without_gemm / all};
}

}  // namespace weft::trace
