#include "weft/grid/layout.h"

#include <algorithm>
#include <initializer_list>
#include <numeric>
#include <utility>

#include "weft/base/text.h"
#include "weft/grid/view.h"

namespace weft::grid {
namespace {

using base::text;
using Complaints = std::vector<std::string>;

// a * b, capped at kMaxWorld + 1; both are in [1, kMaxWorld + 1].
std::int64_t times(std::int64_t a, std::int64_t b) { return std::min(a * b, kMaxWorld + 1); }

bool in_range(std::int64_t size) { return size >= 1 && size <= kMaxWorld; }

void check_sizes(const Layout& layout, Complaints& complaints) {
  const std::pair<const char*, std::int64_t> sizes[] = {{"world", layout.world},
                                                        {"tp", layout.tp},
                                                        {"cp", layout.cp},
                                                        {"pp", layout.pp},
                                                        {"ep", layout.ep},
                                                        {"etp", layout.etp}};
  for (const auto& [name, size] : sizes) {
    if (in_range(size)) continue;
    complaints.push_back(text("{} = {}: use a size from 1 to {}", name, size, kMaxWorld));
  }
}

// Product in words and number, "2*2*1 = 4".
std::string product(std::int64_t a, std::int64_t b, std::int64_t c) {
  return text("{}*{}*{} = {}", a, b, c, a * b * c);
}

// Fix for an indivisible world: more ranks, or a size of 1 for the axes that are too large.
std::string division_fix(const Layout& layout,
                         std::initializer_list<std::pair<const char*, std::int64_t>> sizes) {
  std::string smaller;
  for (const auto& [name, size] : sizes) {
    if (size > 1) smaller += text(" {}=1", name);
  }
  const std::int64_t fewest = fewest_ranks(layout);
  if (fewest > kMaxWorld) return "use smaller sizes, as in" + smaller;
  return text("use a multiple of {} ranks, or smaller sizes, as in{}", fewest, smaller);
}

void check_divisions(const Layout& layout, Complaints& complaints) {
  const std::int64_t dense = times(times(layout.tp, layout.cp), layout.pp);
  const std::int64_t expert = times(times(layout.etp, layout.ep), layout.pp);
  if (layout.world % dense != 0) {
    complaints.push_back(
        text("world = {} is not divisible by tp*cp*pp = {}: {}",
             layout.world,
             product(layout.tp, layout.cp, layout.pp),
             division_fix(layout, {{"tp", layout.tp}, {"cp", layout.cp}, {"pp", layout.pp}})));
  }
  if (layout.world % expert != 0) {
    complaints.push_back(
        text("world = {} is not divisible by etp*ep*pp = {}: {}",
             layout.world,
             product(layout.etp, layout.ep, layout.pp),
             division_fix(layout, {{"etp", layout.etp}, {"ep", layout.ep}, {"pp", layout.pp}})));
  }
}

// Both views must divide the ranks into equal pipelines.
void check_pipelines(const Layout& layout, const AxisOrder& order, Complaints& complaints) {
  if (layout.pp == 1) return;
  const std::int64_t dp = layout.world / (layout.tp * layout.cp * layout.pp);
  const std::int64_t edp = layout.world / (layout.etp * layout.ep * layout.pp);
  if (order.back() != Axis::Pp && dp != edp) {
    complaints.push_back(
        text("order '{}' does not end in pp, and dp = {} differs from edp = {} while pp = {}: end "
             "the order in pp, or choose ep*etp = tp*cp",
             layout.order,
             dp,
             edp,
             layout.pp));
    return;
  }
  std::int64_t dense = 1, expert = 1;
  for (const Axis axis : order) {
    if (axis == Axis::Pp) break;
    if (axis == Axis::Tp) dense *= layout.tp, expert *= layout.etp;
    if (axis == Axis::Cp) dense *= layout.cp;
    if (axis == Axis::Ep) expert *= layout.ep;
    if (axis == Axis::Dp) dense *= dp, expert *= edp;
  }
  if (dense == expert) return;
  complaints.push_back(
      text("order '{}' gives different pipelines to the dense view (stride {}) and the expert view "
           "(stride {}): end the order in pp",
           layout.order,
           dense,
           expert));
}

void check_experts(const Layout& layout, Complaints& complaints) {
  if (!layout.num_experts) return;
  if (*layout.num_experts >= 1 && *layout.num_experts % layout.ep == 0) return;
  complaints.push_back(
      text("{} experts cannot be shared equally by ep = {} ranks: use an ep that "
           "divides the number of experts",
           *layout.num_experts,
           layout.ep));
}

}  // namespace

std::int64_t fewest_ranks(const Layout& layout) {
  for (const std::int64_t size : {layout.tp, layout.cp, layout.pp, layout.ep, layout.etp}) {
    if (!in_range(size)) return kMaxWorld + 1;
  }
  const std::int64_t dense = times(layout.tp, layout.cp);
  const std::int64_t expert = times(layout.etp, layout.ep);
  if (!in_range(dense) || !in_range(expert)) return kMaxWorld + 1;
  const std::int64_t both = times(dense / std::gcd(dense, expert), expert);
  return times(both, layout.pp);
}

std::vector<std::string> layout_complaints(const Layout& layout) {
  Complaints complaints;
  check_sizes(layout, complaints);
  const std::optional<AxisOrder> order = parse_order(layout.order);
  if (!order) {
    complaints.push_back(
        text("order '{}': name each of tp, cp, ep, dp, pp once, as in tp-cp-ep-dp-pp",
             layout.order.substr(0, 64)));
  }
  // The remaining rules divide by the sizes.
  if (!complaints.empty()) return complaints;
  check_divisions(layout, complaints);
  if (complaints.empty()) check_pipelines(layout, *order, complaints);
  check_experts(layout, complaints);
  return complaints;
}

}  // namespace weft::grid
