#include "weft/plan/search/layout_ties.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace weft::plan {

int parts_of(const LayoutChoice& choice, const LayoutWriter& writer) {
  int parts = 0;
  for (const std::int64_t axis :
       {choice.tp, choice.pp, choice.vpp, choice.cp, choice.ep, choice.etp}) {
    parts += axis > 1;
  }
  const bool merges = choice.order != StepOrder::Plain;
  const bool delays = choice.order == StepOrder::MergedDelayed;
  const bool is_full = writer.ladder().at(choice.recompute).is_full;
  parts += merges + delays + (choice.graphs == Graphs::Scoped || choice.graphs == Graphs::Whole);
  parts += (choice.recompute > 0) + is_full;
  return parts + (choice.offload > 0) + (choice.host_state > 0);
}

bool are_tied(const PricedLayout& one, const PricedLayout& other) {
  const double a = one.price.step_ms, b = other.price.step_ms;
  return std::abs(a - b) <= kTie * std::min(a, b);
}

std::vector<PricedLayout> simpler_first(std::vector<PricedLayout> sorted,
                                        const LayoutSpace& space) {
  const LayoutWriter& writer = space.writer();
  const Hardware& hardware = space.hardware();
  const bool joins_machines = hardware.nvlink_domain > hardware.gpus_per_node;
  const auto is_odd_carrier = [&](const LayoutChoice& choice) {
    return joins_machines &&
           (choice.carrier == Carrier::AllToAll || choice.carrier == Carrier::DeepEp);
  };
  std::vector<int> parts;
  for (const PricedLayout& layout : sorted) parts.push_back(parts_of(layout.choice, writer));
  std::vector<bool> is_taken(sorted.size());
  std::vector<PricedLayout> order;
  for (std::size_t fastest = 0; fastest < sorted.size();) {
    if (is_taken[fastest]) {
      ++fastest;
      continue;
    }
    const double limit = (1 + kTie) * sorted[fastest].price.step_ms;
    const auto rank = [&](std::size_t i) {
      return std::tuple(parts[i],
                        is_odd_carrier(sorted[i].choice),
                        sorted[i].price.memory.total(),
                        i);
    };
    std::size_t next = fastest;
    for (std::size_t i = fastest + 1; i < sorted.size() && sorted[i].price.step_ms <= limit; ++i) {
      if (!is_taken[i] && rank(i) < rank(next)) next = i;
    }
    is_taken[next] = true;
    order.push_back(sorted[next]);
  }
  return order;
}

}  // namespace weft::plan
