#include "weft/schedule/builders/writer.h"

#include <algorithm>

#include "weft/base/check.h"
#include "weft/schedule/dependencies.h"

namespace weft::schedule {

void GraphWriter::add(const Node& node, const std::vector<Node>& waits) {
  Entry entry{.node = node, .lane = lane_of(anatomy_, node), .waits = {}};
  needs_.clear();
  waits_.clear();
  const auto need = [&](const Node& before) {
    const std::optional<int> found = index_.find(before);
    CHECK(found, "{} is issued before {}", print(node), print(before));
    needs_.push_back(*found);
  };
  for (const Node& before : required(anatomy_, node, micro_batches_, kind_)) need(before);
  for (const Node& before : waits) need(before);
  // Latest first: a late node implies most of the earlier ones.
  std::ranges::sort(needs_, std::greater<>());
  for (const int before : needs_) {
    if (!order_.before_next(before, entry.lane, waits_)) waits_.push_back(before);
  }
  entry.waits.assign(waits_.rbegin(), waits_.rend());
  order_.append(entry);
  index_.add(node, static_cast<int>(graph_.entries.size()));
  graph_.entries.push_back(std::move(entry));
}

void GraphWriter::add_unit(const Node& input_gradient, const Node& weight_gradient) {
  add(input_gradient);
  add(weight_gradient);
  index_.change(input_gradient, *index_.find(weight_gradient));
}

}  // namespace weft::schedule
