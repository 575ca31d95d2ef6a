// A layout: how many ranks there are and how each kind of parallelism divides them. A value that
// may be wrong; `layout_complaints` says how, and a Grid is only built from one that is right.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weft::grid {

inline constexpr std::int64_t kMaxWorld = 1 << 20;

struct Layout {
  std::int64_t world = 1;
  std::int64_t tp = 1;
  std::int64_t cp = 1;
  std::int64_t pp = 1;
  std::int64_t ep = 1;
  std::int64_t etp = 1;
  // The leftmost axis varies fastest in the rank. Names tp, cp, ep, dp and pp once each.
  std::string order = "tp-cp-ep-dp-pp";
  // Experts of a MoE layer; where given, every ep rank must own equally many.
  std::optional<std::int64_t> num_experts = std::nullopt;
};

// Every violated constraint with its numbers and the fix; empty: the layout is legal.
std::vector<std::string> layout_complaints(const Layout& layout);

// The fewest ranks that serve both views: pp * lcm(tp * cp, etp * ep). Anything above kMaxWorld, or
// from sizes below 1, is reported as kMaxWorld + 1.
std::int64_t fewest_ranks(const Layout& layout);

}  // namespace weft::grid
