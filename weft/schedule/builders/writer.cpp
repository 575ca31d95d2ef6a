#include "weft/schedule/builders/writer.h"

#include <algorithm>

#include "weft/base/check.h"

namespace weft::schedule {

void GraphWriter::add(const Node& node) {
  Entry entry{.node = node, .lane = lane_of(anatomy_, node), .waits = {}};
  std::vector<int> needs;
  for (const Node& need : required(anatomy_, node, micro_batches_, pass_)) {
    const auto found = index_.find(need);
    CHECK(found != index_.end(), "{} is issued before {}", print(node), print(need));
    needs.push_back(found->second);
  }
  // Latest first: a late node implies most of the earlier ones.
  std::ranges::sort(needs, std::greater<>());
  for (const int need : needs) {
    if (!order_.before_next(need, entry.lane, entry.waits)) entry.waits.push_back(need);
  }
  std::ranges::sort(entry.waits);
  order_.append(entry);
  index_.emplace(node, static_cast<int>(graph_.entries.size()));
  graph_.entries.push_back(std::move(entry));
}

void GraphWriter::add_unit(const Node& input_gradient, const Node& weight_gradient) {
  add(input_gradient);
  add(weight_gradient);
  index_.at(input_gradient) = index_.at(weight_gradient);
}

}  // namespace weft::schedule
