#include "weft/schedule/passes/rewrite.h"

#include <algorithm>

#include "weft/base/check.h"
#include "weft/schedule/builders/writer.h"

namespace weft::schedule {

std::vector<Step> steps_of(const Graph& graph) {
  std::vector<Step> steps;
  steps.reserve(graph.entries.size());
  for (const Entry& entry : graph.entries) {
    Step step{.node = entry.node, .waits = {}};
    for (const int wait : entry.waits) {
      step.waits.push_back(graph.entries[static_cast<std::size_t>(wait)].node);
    }
    steps.push_back(std::move(step));
  }
  return steps;
}

Graph write(const std::vector<Step>& steps, const Anatomy& anatomy, int micro_batches) {
  GraphWriter writer(anatomy, micro_batches, StepKind::Training);
  for (const Step& step : steps) writer.add(step.node, step.waits);
  return writer.take();
}

void move_behind(std::vector<Step>& steps, std::size_t from, std::size_t to) {
  CHECK(from < to && to < steps.size(), "step {} behind {} of {}", from, to, steps.size());
  const auto begin = steps.begin() + static_cast<std::ptrdiff_t>(from);
  std::rotate(begin, begin + 1, steps.begin() + static_cast<std::ptrdiff_t>(to) + 1);
}

}  // namespace weft::schedule
